# shellcheck shell=bash disable=SC2034,SC2154 # workdir and results are shared between the files
# The part of scripts/lib/manifests.sh that tries what deploy/kubernetes has for topolet-extender.

# put_lease NAME NAMESPACE
put_lease() {
  put "lease-$1" <<YAML
{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "$1", "namespace": "$2"},
 "spec": {"holderIdentity": "one"}}
YAML
}

# renew_lease USER NAME: as whoever holds it does, who has read it
renew_lease() {
  local lease=/apis/coordination.k8s.io/v1/namespaces/$kNamespace/leases/$2
  kube "$workdir" "$1" get --raw "$lease" | put "renewed-$2"
  kube "$workdir" "$1" replace --raw "$lease" -f "$(object "renewed-$2")"
}

# The extender may do what it does, and nothing else. That it binds with a zone is tried with the policy.
try_extender() {
  local resource=noderesourcetopologies.topology.node.k8s.io leases=/apis/coordination.k8s.io/v1/namespaces
  write_token "$workdir" extender "$(kube "$workdir" admin create token topolet-extender --namespace "$kNamespace")"
  allows "an extender lists the objects" kube "$workdir" extender get "$resource"
  allows "an extender watches the objects" kube "$workdir" extender get --raw \
    '/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies?watch=1&timeoutSeconds=1'
  refuses "an extender writes no object" 'cannot update resource "noderesourcetopologies"' \
    kube "$workdir" extender replace --raw "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/n1" \
    -f "$(object topology-n1)"
  refuses "an extender deletes no object" 'cannot delete resource "noderesourcetopologies"' \
    kube "$workdir" extender delete "$resource" n1
  allows "an extender lists pods" kube "$workdir" extender get pods --all-namespaces \
    --field-selector 'spec.nodeName!=,status.phase=Pending'
  allows "an extender reads a pod" kube "$workdir" extender get pod agent-n1 --namespace "$kNamespace"
  refuses "an extender does not watch pods" 'cannot watch resource "pods"' \
    kube "$workdir" extender get --raw '/api/v1/pods?watch=1&timeoutSeconds=1'
  refuses "an extender makes no pods" 'cannot create resource "pods"' \
    kube "$workdir" extender create -f "$(object agent-n1)"
  refuses "an extender changes no pods" 'cannot patch resource \"pods\"' \
    patch_as extender "namespaces/$kNamespace/pods/agent-n1" '{"metadata": {"labels": {"a": "b"}}}'
  refuses "an extender deletes no pods" 'cannot delete resource "pods"' \
    kube "$workdir" extender delete pod agent-n1 --namespace "$kNamespace"
  refuses "an extender reads no nodes" 'cannot get resource "nodes"' kube "$workdir" extender get node n1
  refuses "an extender reads no secrets" 'cannot list resource "secrets"' \
    kube "$workdir" extender get secrets --namespace "$kNamespace"
  refuses "an extender writes no events" 'cannot create resource "events"' \
    kube "$workdir" extender create -f "$(object on-pod)" --validate=false
  put_lease topolet-extender "$kNamespace"
  put_lease another "$kNamespace"
  allows "an extender makes its Lease" \
    kube "$workdir" extender create --raw "$leases/$kNamespace/leases" -f "$(object lease-topolet-extender)"
  allows "an extender reads its Lease" kube "$workdir" extender get lease topolet-extender --namespace "$kNamespace"
  allows "an extender renews its Lease" renew_lease extender topolet-extender
  refuses "an extender gives up no Lease" 'cannot delete resource "leases"' \
    kube "$workdir" extender delete lease topolet-extender --namespace "$kNamespace"
  logged kube "$workdir" admin create -f "$(object lease-another)"
  refuses "an extender reads no other Lease" 'cannot get resource "leases"' \
    kube "$workdir" extender get lease another --namespace "$kNamespace"
  refuses "an extender takes no other Lease" 'cannot update resource "leases"' kube "$workdir" extender replace --raw \
    "$leases/$kNamespace/leases/another" -f "$(object lease-another)"
  put_lease topolet-extender kube-system
  refuses "an extender makes no Lease elsewhere" 'cannot create resource' \
    kube "$workdir" extender create --raw "$leases/kube-system/leases" -f "$(object lease-topolet-extender)"
  write_token "$workdir" scheduler "$(kube "$workdir" admin create token topolet-scheduler --namespace "$kNamespace")"
  put_lease topolet-scheduler "$kNamespace"
  allows "the scheduler makes its Lease" \
    kube "$workdir" scheduler create --raw "$leases/$kNamespace/leases" -f "$(object lease-topolet-scheduler)"
  allows "the scheduler renews its Lease" renew_lease scheduler topolet-scheduler
  allows "the scheduler lists nodes" kube "$workdir" scheduler get nodes
}

# Their pods need nothing that the strictest level of Pod Security refuses, which the agent's does.
try_extender_pods() {
  local name
  put restricted <<'YAML'
apiVersion: v1
kind: Namespace
metadata: {name: restricted, labels: {pod-security.kubernetes.io/enforce: restricted}}
YAML
  logged kube "$workdir" admin create -f "$(object restricted)"
  for name in topolet-extender topolet-scheduler topolet-agent; do
    logged kube "$workdir" admin create serviceaccount "$name" --namespace restricted
  done
  for name in topolet-extender topolet-scheduler; do
    put_pod_of deployment "$name"
    allows "the pod of $name is allowed in a restricted namespace" \
      kube "$workdir" admin create --dry-run=server --validate=strict -f "$(object "$name")"
  done
  put_pod_of daemonset topolet-agent
  refuses "that of the agent is not" 'violates PodSecurity' \
    kube "$workdir" admin create --dry-run=server -f "$(object topolet-agent)"
}

# put_pod_of KIND NAME: the pod that it would make, in the namespace restricted
put_pod_of() {
  {
    printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: restricted}\nspec: ' "$2"
    kube "$workdir" admin get "$1" "$2" --namespace "$kNamespace" -o 'jsonpath={.spec.template.spec}'
  } | put "$2"
}

try_zone_annotation() {
  local policy
  policy=$(by_policy topolet-zone-annotation)
  put_pod zoned tenant 'annotations: {topolet.io/zone: "{}"}'
  put_pod plain tenant 'labels: {a: b}'
  refuses "a user creates no pod with a zone" "$policy" \
    kube "$workdir" tenant create --dry-run=server -f "$(object zoned)"
  allows "a user creates a pod without" kube "$workdir" tenant create -f "$(object plain)"
  refuses "a user sets no zone later" "$policy" \
    kube "$workdir" tenant annotate pod plain --namespace tenant 'topolet.io/zone={}'
  refuses "nobody sets a zone with the status" "$policy" kube "$workdir" admin patch pod plain --namespace tenant \
    --subresource=status -p '{"metadata": {"annotations": {"topolet.io/zone": "{}"}}}'
  put_binding plain tenant '{"topolet.io/zone": "{\"v\":1}"}'
  refuses "another scheduler binds with no zone" "$policy" bind plain tenant
  allows "the extender binds with a zone" bind plain tenant --as "$kExtenderUser"
  says "which the pod has then" 'n1 {"v":1}' kube "$workdir" tenant get pod plain --namespace tenant \
    -o 'jsonpath={.spec.nodeName} {.metadata.annotations.topolet\.io/zone}'
  allows "a user labels a pod with a zone" kube "$workdir" tenant label pod plain --namespace tenant c=d
  refuses "a user changes no zone" "$policy" \
    kube "$workdir" tenant annotate --overwrite pod plain --namespace tenant 'topolet.io/zone={}'
}
