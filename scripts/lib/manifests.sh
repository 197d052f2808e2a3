# shellcheck shell=bash disable=SC2034,SC2154 # workdir and results are shared between the files
# Tests of the manifests in deploy/kubernetes on a real apiserver.
# shellcheck source=scripts/lib/manifests_made.sh
source scripts/lib/manifests_made.sh

run_cluster() {
  say "Trying the manifests on a control plane"
  workdir=$(make_workdir "$$")
  mkdir "$workdir/objects"
  start_control_plane "$workdir" 2>>"$logs/cluster.log"
  try_chart_files
  try_values
  try_manifests
  try_tenants
  try_agents
  try_agent_rights
  try_agent_topology
  try_columns
  try_agent_node
  try_agent_events
  try_units
  try_installer
  try_extender
  try_extender_pods
  try_flow_schema
  try_monitoring
  try_zone_annotation
  try_qos_class
  try_exclusive_annotations
  open_nodes
  try_scheduler overreserve
  try_scheduler passthrough
  try_removal
  try_chart
  stop_control_plane "$workdir"
  close_workdir
}

# put NAME: keeps standard input as an object that kubectl can be given: $(object NAME)
put() { cat >"$workdir/objects/$1.yaml"; }
object() { echo "$workdir/objects/$1.yaml"; }

logged() {
  printf '+ %s\n' "$*" >>"$logs/cluster.log"
  "$@" >>"$logs/cluster.log" 2>&1
}

# allows TEST COMMAND…
allows() { check through "cluster: $1" 0 logged "${@:2}"; }

# refuses TEST TEXT COMMAND…: the command fails with TEXT. A policy is in force a moment after it was written.
refuses() { check through "cluster: $1" 20 fails_with "${@:2}"; }

fails_with() {
  local output
  printf '+ %s\n' "${*:2}" >>"$logs/cluster.log"
  if output=$("${@:2}" 2>&1); then
    printf '%s\nwas not refused\n' "$output" >>"$logs/cluster.log"
    return 1
  fi
  printf '%s\n' "$output" >>"$logs/cluster.log"
  [[ $output == *"$1"* ]]
}

# says TEST TEXT COMMAND…: the command prints exactly TEXT, within 20 s.
says() { check through "cluster: $1" 20 prints "${@:2}"; }

prints() { [[ $("${@:2}" 2>>"$logs/cluster.log") == "$1" ]]; }

by_policy() { echo "ValidatingAdmissionPolicy '$1'"; }

run_helm() {
  HELM_CACHE_HOME=$workdir/helm HELM_CONFIG_HOME=$workdir/helm HELM_DATA_HOME=$workdir/helm \
    helm --kubeconfig "$workdir/admin.kubeconfig" "$@"
}

try_manifests() {
  local name
  # Even a dry run needs the namespace.
  logged kube "$workdir" admin create namespace "$kNamespace"
  for name in "${kManifestNames[@]}"; do
    allows "$name.yaml: a strict dry run" \
      kube "$workdir" admin apply --dry-run=server --validate=strict -f "$kManifests/$name.yaml"
    allows "$name.yaml is created" kube "$workdir" admin apply --validate=strict -f "$kManifests/$name.yaml"
  done
  allows "the definition of NodeResourceTopology is served" kube "$workdir" admin wait --for=condition=Established \
    crd/noderesourcetopologies.topology.node.k8s.io --timeout 30s
}

# Two namespaces, one of which may use LSE, and a user who may do in them what tenants may.
try_tenants() {
  local namespace role
  put namespaces <<'YAML'
{apiVersion: v1, kind: Namespace, metadata: {name: tenant}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: trusted, labels: {topolet.io/allow-lse: "true"}}}
YAML
  logged kube "$workdir" admin create -f "$(object namespaces)"
  for namespace in tenant trusted; do
    # There is no controller that makes them.
    logged kube "$workdir" admin create serviceaccount default --namespace "$namespace"
    for role in view edit; do
      logged kube "$workdir" admin create rolebinding "tenant-$role" --namespace "$namespace" --user tenant \
        --clusterrole "system:aggregate-to-$role"
    done
  done
  write_user "$workdir" tenant tenant
}

# Two nodes and the DaemonSet's pod on the first, whose token the user agent has.
try_agents() {
  local node
  for node in n1 n2; do
    put "$node" <<YAML
{apiVersion: v1, kind: Node, metadata: {name: $node, annotations: {example.com/kept: "1"}}}
YAML
    logged kube "$workdir" admin create -f "$(object "$node")"
  done
  make_daemon_pod agent topolet-agent topolet-agent
  write_token "$workdir" no-node "$(kube "$workdir" admin create token topolet-agent --namespace "$kNamespace")"
}

# make_daemon_pod NAME DAEMONSET SERVICE_ACCOUNT: the DaemonSet's pod NAME-n1 on n1, whose token the user NAME has.
make_daemon_pod() {
  local name=$1-n1 uid
  {
    printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec: ' "$name" "$kNamespace"
    kube "$workdir" admin get daemonset "$2" --namespace "$kNamespace" -o 'jsonpath={.spec.template.spec}' |
      sed 's/^{/{"nodeName": "n1", /'
  } | put "$name"
  allows "the pod of $2 is created" kube "$workdir" admin create --validate=strict -f "$(object "$name")"
  uid=$(kube "$workdir" admin get pod "$name" --namespace "$kNamespace" -o 'jsonpath={.metadata.uid}')
  write_token "$workdir" "$1" "$(kube "$workdir" admin create token "$3" --namespace "$kNamespace" \
    --bound-object-kind Pod --bound-object-name "$name" --bound-object-uid "$uid")"
}

# with_token NAME PATH ARGUMENT…: curl, with the token of the user NAME
with_token() {
  curl --silent --cacert "$workdir/ca.crt" \
    --header "Authorization: Bearer $(sed -n 's/^ *token: //p' "$workdir/$1.kubeconfig")" \
    "https://127.0.0.1:$(<"$workdir/kube-apiserver.port")/api/v1/$2" "${@:3}"
}

# patch_as NAME PATH PATCH: without reading the object first, which kubectl does.
patch_as() {
  with_token "$1" "$2" --fail-with-body --request PATCH --data "$3" \
    --header 'Content-Type: application/merge-patch+json'
}

try_agent_rights() {
  allows "an agent lists pods" kube "$workdir" agent get pods --all-namespaces
  allows "an agent watches pods" kube "$workdir" agent get --raw '/api/v1/pods?watch=1&timeoutSeconds=1'
  refuses "an agent reads no secrets" 'cannot list resource "secrets"' \
    kube "$workdir" agent get secrets --all-namespaces
  refuses "an agent makes no pods" 'cannot create resource "pods"' \
    kube "$workdir" agent create -f "$(object agent-n1)"
  refuses "an agent lists no nodes" 'cannot list resource "nodes"' kube "$workdir" agent get nodes
  refuses "an agent reads no configuration" 'cannot list resource "configmaps"' \
    kube "$workdir" agent get configmaps --all-namespaces
}

# put_topology NODE AVAILABLE ATTRIBUTE: two zones with so many CPUs to be had in each
put_topology() {
  put "topology-$1" <<YAML
apiVersion: topology.node.k8s.io/v1alpha2
kind: NodeResourceTopology
metadata: {name: $1}
attributes:
- {name: topologyManagerPolicy, value: single-numa-node}
- {name: topologyManagerScope, value: pod}
- {name: topolet.io/generation, value: "$3"}
zones:
- name: node-0
  type: Node
  costs: [{name: node-0, value: 10}, {name: node-1, value: 20}]
  attributes: [{name: topolet.io/cpus, value: 0-3}]
  resources:
  - {name: cpu, capacity: "4", allocatable: "4", available: "$2"}
  - {name: memory, capacity: 8Gi, allocatable: 7.5Gi, available: 6442450944}
- name: node-1
  type: Node
  costs: [{name: node-0, value: 20}, {name: node-1, value: 10}]
  resources:
  - {name: cpu, capacity: "4", allocatable: "4", available: "$2"}
  - {name: memory, capacity: 8Gi, allocatable: 8Gi, available: 6Gi}
YAML
}

try_agent_topology() {
  local policy resource=noderesourcetopologies.topology.node.k8s.io
  policy=$(by_policy topolet-agent-topology)
  put_topology n1 4 1
  put_topology n2 1 1
  refuses "an agent does not create the object of another node" "$policy" \
    kube "$workdir" agent create --dry-run=server -f "$(object topology-n2)"
  allows "an agent creates the object of its node" \
    kube "$workdir" agent create --validate=strict -f "$(object topology-n1)"
  put_topology n1 4 2
  allows "an agent updates the object of its node" \
    kube "$workdir" agent replace --validate=strict -f "$(object topology-n1)"
  allows "others write any object" kube "$workdir" admin create -f "$(object topology-n2)"
  refuses "an agent does not update the object of another node" "$policy" \
    kube "$workdir" agent replace -f "$(object topology-n2)"
  refuses "a token without a node writes no object" "the token names no node" \
    kube "$workdir" no-node replace -f "$(object topology-n1)"
  refuses "an agent deletes no object" 'cannot delete resource "noderesourcetopologies"' \
    kube "$workdir" agent delete "$resource" n1
  says "the object keeps its attributes" 2 \
    kube "$workdir" admin get "$resource" n1 -o 'jsonpath={.attributes[?(@.name=="topolet.io/generation")].value}'
  says "v1alpha1 shows the zones and not the attributes" "node-0 node-1/" kube "$workdir" admin get \
    noderesourcetopologies.v1alpha1.topology.node.k8s.io n1 -o 'jsonpath={.zones[*].name}/{.attributes}'
  sed 's/, available: "4"//' "$(object topology-n1)" | put incomplete
  refuses "a zone has to say what is available" 'available: Required value' \
    kube "$workdir" admin replace -f "$(object incomplete)"
  sed 's/7.5Gi/7.5Gigabytes/' "$(object topology-n1)" | put nonsense
  refuses "a quantity is one" 'allocatable: Invalid value' kube "$workdir" admin replace -f "$(object nonsense)"
}

try_agent_node() {
  local policy
  policy=$(by_policy topolet-agent-node)
  refuses "an agent does not label its node" "$policy" kube "$workdir" agent label node n1 example.com/a=b
  allows "an agent annotates its node" kube "$workdir" agent annotate node n1 topolet.io/touched=1
  allows "an agent changes its annotation" kube "$workdir" agent annotate --overwrite node n1 topolet.io/touched=2
  allows "an agent takes its annotation away" kube "$workdir" agent annotate node n1 topolet.io/touched-
  refuses "an agent does not annotate another node" "$policy" \
    kube "$workdir" agent annotate node n2 topolet.io/touched=1
  refuses "an agent adds no other annotation" "$policy" kube "$workdir" agent annotate node n1 example.com/new=1
  refuses "an agent changes no other annotation" "$policy" \
    kube "$workdir" agent annotate --overwrite node n1 example.com/kept=2
  refuses "an agent removes no other annotation" "$policy" kube "$workdir" agent annotate node n1 example.com/kept-
  refuses "an agent does not cordon its node" "$policy" \
    kube "$workdir" agent patch node n1 -p '{"spec": {"unschedulable": true}}'
  refuses "an agent adds no finalizer to its node" "$policy" \
    kube "$workdir" agent patch node n1 -p '{"metadata": {"finalizers": ["example.com/f"]}}'
  refuses "a token without a node annotates none" "the token names no node" \
    kube "$workdir" no-node annotate node n1 topolet.io/touched=3
  refuses "an agent does not change the status of its node" 'cannot patch resource \"nodes/status\"' \
    patch_as agent nodes/n1/status '{"status": {"capacity": {"cpu": "99"}}}'
  allows "others label nodes" kube "$workdir" admin label node n1 example.com/a=b
}

# put_event NAME KIND
put_event() {
  put "$1" <<YAML
apiVersion: v1
kind: Event
metadata: {name: $1, namespace: default}
involvedObject: {apiVersion: v1, kind: $2, name: x, namespace: $([[ $2 == Node ]] || echo default)}
type: Normal
reason: Placed
message: placed on node 0
YAML
}

try_agent_events() {
  local policy
  policy=$(by_policy topolet-agent-events)
  put_event on-node Node
  put_event on-pod Pod
  refuses "an agent writes no event about a node" "$policy" kube "$workdir" agent create -f "$(object on-node)"
  allows "an agent writes an event about a pod" kube "$workdir" agent create -f "$(object on-pod)"
  allows "an agent counts its event up" patch_as agent namespaces/default/events/on-pod '{"count": 2}'
  refuses "a token without a node writes no event" "the token names no node" \
    patch_as no-node namespaces/default/events/on-pod '{"count": 3}'
  allows "others write events about nodes" kube "$workdir" admin create -f "$(object on-node)"
  refuses "an agent changes no event about a node" "$policy" \
    patch_as agent namespaces/default/events/on-node '{"count": 2}'
  refuses "nor makes it one about a pod" "$policy" patch_as agent namespaces/default/events/on-node \
    '{"involvedObject": {"kind": "Pod", "namespace": "default"}}'
  put newer <<'YAML'
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: newer, namespace: default}
eventTime: "2026-01-01T00:00:00.000000Z"
reportingController: topolet.io/agent
reportingInstance: n1
action: Place
type: Normal
reason: Placed
regarding: {apiVersion: v1, kind: Node, name: n1}
YAML
  logged kube "$workdir" admin create clusterrole newer-events --verb=create --resource=events.events.k8s.io
  logged kube "$workdir" admin create clusterrolebinding newer-events --clusterrole newer-events \
    --serviceaccount "$kNamespace:topolet-agent"
  refuses "nor one of the group events.k8s.io" "$policy" kube "$workdir" agent create -f "$(object newer)"
}

try_installer() {
  local policy
  policy=$(by_policy topolet-installer-node)
  make_daemon_pod installer topolet-install topolet-installer
  write_token "$workdir" no-node-installer "$(kube "$workdir" admin create token topolet-installer --namespace "$kNamespace")"
  allows "an installer reads its node" kube "$workdir" installer get node n1
  allows "an installer tells what is installed" kube "$workdir" installer label node n1 topolet.io/installed=0.1.0
  allows "an installer tells what failed" kube "$workdir" installer annotate node n1 topolet.io/install-failed=why
  allows "an installer takes both away, as its script does" patch_as installer nodes/n1 \
    '{"metadata":{"labels":{"topolet.io/installed":null},"annotations":{"topolet.io/install-failed":null}}}'
  refuses "an installer does not tell it of another node" "$policy" \
    kube "$workdir" installer label node n2 topolet.io/installed=0.1.0
  refuses "an installer does not choose nodes" "$policy" kube "$workdir" installer label node n1 topolet.io/node=install
  refuses "an installer changes no other label" "$policy" kube "$workdir" installer label node n1 example.com/new=1
  refuses "an installer writes no other annotation" "$policy" \
    kube "$workdir" installer annotate node n1 topolet.io/grown=1
  refuses "an installer removes no other annotation" "$policy" \
    kube "$workdir" installer annotate node n1 example.com/kept-
  refuses "an installer does not cordon its node" "$policy" \
    kube "$workdir" installer patch node n1 -p '{"spec": {"unschedulable": true}}'
  refuses "an installer does not change the status of its node" 'cannot patch resource \"nodes/status\"' \
    patch_as installer nodes/n1/status '{"status": {"capacity": {"cpu": "99"}}}'
  refuses "an installer's token without a node labels none" "the token names no node" \
    kube "$workdir" no-node-installer label node n1 topolet.io/installed=0.1.0
  refuses "an installer lists no pods" 'cannot list resource "pods"' kube "$workdir" installer get pods --all-namespaces
}

# level_of NAME [PATH]: the UID of the FlowSchema that served a request
level_of() {
  with_token "$1" "${2-pods?limit=1}" --output /dev/null --dump-header - |
    tr -d '\r' | sed -n 's/^x-kubernetes-pf-flowschema-uid: //Ip'
}

try_flow_schema() {
  says "requests of agents have their own priority level" \
    "$(kube "$workdir" admin get flowschema topolet-agents -o 'jsonpath={.metadata.uid}')" level_of agent
  says "those of the extender have that of kube-scheduler" \
    "$(kube "$workdir" admin get flowschema topolet-extender -o 'jsonpath={.metadata.uid}')" level_of extender
  says "and its Lease that of other leaders" \
    "$(kube "$workdir" admin get flowschema topolet-extender-lease -o 'jsonpath={.metadata.uid}')" \
    level_of extender "../../apis/coordination.k8s.io/v1/namespaces/$kNamespace/leases/topolet-extender"
  says "the level of agents exists" False kube "$workdir" admin get flowschema topolet-agents \
    -o 'jsonpath={.status.conditions[?(@.type=="Dangling")].status}'
}

# put_pod NAME NAMESPACE METADATA
put_pod() {
  put "$1" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: $2, $3}
spec: {containers: [{name: main, image: none}]}
YAML
}

# put_binding NAME NAMESPACE ANNOTATIONS: of the pod NAME, to n1
put_binding() {
  put "binding-$1" <<YAML
{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "$1", "namespace": "$2", "annotations": $3},
 "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}}
YAML
}

# bind NAME NAMESPACE ARGUMENT…: posts put_binding's object
bind() {
  kube "$workdir" admin create --raw "/api/v1/namespaces/$2/pods/$1/binding" -f "$(object "binding-$1")" "${@:3}"
}

try_qos_class() {
  local policy key=koordinator.sh/qosClass
  policy=$(by_policy topolet-qos-class)
  put_pod lse tenant "labels: {$key: LSE}"
  put_pod lsr tenant "annotations: {$key: LSR}"
  put_pod ls tenant "labels: {$key: LS}"
  put_pod lse-trusted trusted "labels: {$key: LSE}"
  refuses "LSE is refused as a label" "$policy" \
    kube "$workdir" tenant create --dry-run=server -f "$(object lse)"
  refuses "LSR is refused as an annotation" "$policy" \
    kube "$workdir" tenant create --dry-run=server -f "$(object lsr)"
  allows "LS is allowed" kube "$workdir" tenant create -f "$(object ls)"
  refuses "LS does not become LSR" "$policy" \
    kube "$workdir" tenant label --overwrite pod ls --namespace tenant "$key=LSR"
  put_binding ls tenant "{\"$key\": \"LSE\"}"
  refuses "nor LSE when it is bound" "$policy" bind ls tenant
  allows "LSE is allowed in a namespace with the label" kube "$workdir" tenant create -f "$(object lse-trusted)"
  refuses "a user does not label a namespace" 'cannot patch resource "namespaces"' \
    kube "$workdir" tenant label namespace tenant topolet.io/allow-lse=true
  logged kube "$workdir" admin label namespace trusted topolet.io/allow-lse-
  put_pod lse-late trusted "labels: {$key: LSE}"
  refuses "LSE is refused when the label is gone" "$policy" \
    kube "$workdir" tenant create --dry-run=server -f "$(object lse-late)"
  allows "a pod that has its class keeps it" kube "$workdir" tenant label pod lse-trusted --namespace trusted c=d
}

# put_asking_pod NAME NAMESPACE ANNOTATIONS CPUS
put_asking_pod() {
  put "$1" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: $2, annotations: $3}
spec: {containers: [{name: main, image: none, resources: {requests: {cpu: $4}}}]}
YAML
}

try_exclusive_annotations() {
  local policy taken=0 words
  policy=$(by_policy topolet-exclusive-annotations)
  for words in '{topolet.io/cpus: exclusive}' '{topolet.io/smt: isolate}' '{topolet.io/isolated: prefer}' \
    '{topolet.io/class: LSE}' '{topolet.io/class: LSR}' "{topolet.io/containers: '{\"main\": {\"class\": \"LSE\"}}'}" \
    "{topolet.io/containers: '{\"main\": {\"cpus\": \"exclusive\"}}'}" \
    "{topolet.io/containers: '{\"main\": {\"\\u0073mt\": \"isolate\"}}'}"; do
    put_asking_pod "taking-$((++taken))" tenant "$words" 10m
    refuses "an annotation that takes more than is requested: $words" "$policy" \
      kube "$workdir" tenant create --dry-run=server -f "$(object "taking-$taken")"
  done
  put_asking_pod whole tenant '{topolet.io/cpus: exclusive}' 2
  allows "exclusive CPUs as they are requested" kube "$workdir" tenant create -f "$(object whole)"
  put_binding whole tenant '{"topolet.io/smt": "isolate"}'
  refuses "idle siblings when it is bound" "$policy" bind whole tenant
  logged kube "$workdir" admin label namespace trusted topolet.io/allow-exclusive=true
  put_asking_pod taking-trusted trusted '{topolet.io/cpus: exclusive, topolet.io/smt: isolate}' 10m
  allows "both are allowed in a namespace with the label" \
    kube "$workdir" tenant create -f "$(object taking-trusted)"
}

# open_node NAME CPUS AVAILABLE: a node that pods can be bound to, and its object with so many CPUs in each zone
open_node() {
  local resources
  resources=$(printf '{"cpu": "%s", "memory": "%sGi", "pods": "99"}' "$2" "$2")
  put "$1" <<YAML
{apiVersion: v1, kind: Node, metadata: {name: $1}}
YAML
  put_topology "$1" "$3" 1
  logged kube "$workdir" admin create -f "$(object "$1")" -f "$(object "topology-$1")"
  # A new node is tainted until a controller sees that it is ready.
  logged kube "$workdir" admin patch node "$1" --type merge -p '{"spec": {"taints": []}}'
  logged kube "$workdir" admin patch node "$1" --subresource=status \
    -p "{\"status\": {\"capacity\": $resources, \"allocatable\": $resources}}"
}

# A scheduler without the plugin would choose the large node, none of whose zones has two CPUs left.
open_nodes() {
  open_node small 8 4
  open_node large 64 1
}

try_scheduler() {
  put "wide-$1" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: wide-$1, namespace: tenant}
spec:
  schedulerName: topology-aware
  containers:
  - name: main
    image: none
    resources: {limits: {cpu: "2", memory: 64Mi}}
YAML
  start_scheduler "$workdir" "$1" "$kManifests/scheduler-$1.yaml"
  logged kube "$workdir" tenant create -f "$(object "wide-$1")"
  says "scheduler-$1.yaml: a pod goes where it fits into a zone" small \
    kube "$workdir" tenant get pod "wide-$1" --namespace tenant -o 'jsonpath={.spec.nodeName}'
  # The next scheduler would not know what to make of it.
  logged kube "$workdir" admin delete pod "wide-$1" --namespace tenant --force --grace-period 0
  stop_scheduler "$workdir" "$1"
}

try_removal() {
  local name files=()
  for name in scheduler-extender extender installer agent-token agent flowschema policies crd; do files+=(-f "$kManifests/$name.yaml"); done
  allows "all but rbac.yaml is removed" kube "$workdir" admin delete "${files[@]}"
  # There is no controller that empties the namespace.
  allows "rbac.yaml is removed" kube "$workdir" admin delete --wait=false -f "$kManifests/rbac.yaml"
}
