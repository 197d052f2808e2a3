# shellcheck shell=bash disable=SC2034,SC2154 # workdir and results are shared between the files
# The part of scripts/lib/manifests.sh that tries the chart's values, what it has for Prometheus, and agents that are units.

try_chart_files() {
  allows "the chart is well-formed" run_helm lint --strict "$kChart"
  allows "the manifests are what the chart makes" manifests_are_current
}

# A mistake is refused, not left unread.
try_values() {
  local value
  for value in agnt.watchSocket=/run/topolet/watch/watch.sock agent.watchSokcet=/run/topolet/watch/watch.sock \
    agent.watchSocket=unix:///run/topolet/watch/watch.sock agent.metricsAddress=none agent.schedulerNames=topolet agent.resources.limit.memory=1Gi \
    image.pullPolicy=Sometimes capacity.enabled=yes installer.maxUnavailable=0 installer.patience=soon \
    extender.replicas=two extender.zonePolicy=singel extender.leaseDuration=2 'extender.tolerations[0].effect=Never' \
    'extender.exclusiveNamespaces={Team}' scheduler.affinity.nodes=a podMonitor.interval=often crd.kept=true; do
    refuses "the value $value is refused" "don't meet the specifications" run_helm template topolet "$kChart" --set "$value"
  done
  echo '{image: {tag: 1.10}}' | put tag
  refuses "a tag that is read as another number is refused" "don't meet the specifications" \
    run_helm template topolet "$kChart" --values "$(object tag)"
  put values <<'YAML'
global: {some: thing}
image: {tag: 20261127, pullSecrets: [{name: registry}]}
agent:
  schedulerNames: [own-scheduler]
  nodeSelector: {pool: topolet}
  tolerations: [{key: pool, operator: Equal, value: topolet, effect: NoSchedule}]
  resources: {requests: {cpu: 1, memory: 64Mi}, limits: null}
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: []}]}}}
installer: {enabled: true, maxUnavailable: 10%, tolerations: []}
extender: {enabled: true, leaseDuration: 30, resources: {limits: {memory: 1Gi}}, affinity: {podAntiAffinity: {}}}
scheduler: {enabled: true, image: scheduler:1, nodeSelector: {pool: control}}
podMonitor: {enabled: true, labels: {release: prometheus}, interval: 30s}
prometheusRule: {enabled: true}
YAML
  run_helm template topolet "$kChart" --values "$(object values)" 2>>"$logs/cluster.log" | put rendered
  for value in 'image: topolet:20261127' 'pool: topolet' 'value: topolet' 'memory: 64Mi' 'matchFields: []' \
    'maxUnavailable: 10%' '--lease-duration=30' 'memory: 1Gi' 'pool: control' --scheduler-name=own-scheduler 'release: prometheus' 'interval: 30s'; do
    allows "the values are used: $value" grep -F -e "$value" "$(object rendered)"
  done
}

try_chart() {
  local namespace=topolet-by-chart resource=noderesourcetopologies.topology.node.k8s.io
  allows "the chart is installed" run_helm install topolet "$kChart" --namespace "$namespace" --create-namespace \
    --set image.tag=1 --set agent.nodeSelector.pool=topolet --set extender.enabled=true --set extender.zonePolicy=single --set extender.leaseDuration=30 \
    --set scheduler.enabled=true --set scheduler.image=scheduler:1
  says "its values are used" "topolet:1 topolet" \
    kube "$workdir" admin get daemonset topolet-agent --namespace "$namespace" \
    -o 'jsonpath={.spec.template.spec.containers[0].image} {.spec.template.spec.nodeSelector.pool}'
  says "the agent has no control socket" "" kube "$workdir" admin get daemonset topolet-agent --namespace "$namespace" \
    -o 'jsonpath={.spec.template.spec.volumes[?(@.name=="control")].hostPath.path}'
  allows "the chart is upgraded" run_helm upgrade topolet "$kChart" --namespace "$namespace" --reuse-values \
    --set capacity.enabled=true
  says "the agent has it where capacities are handed down" /run/topolet \
    kube "$workdir" admin get daemonset topolet-agent --namespace "$namespace" \
    -o 'jsonpath={.spec.template.spec.volumes[?(@.name=="control")].hostPath.path}'
  says "those of the extender too" "topolet:1 --lease-duration=30 --zone-policy=single" \
    kube "$workdir" admin get deployment topolet-extender --namespace "$namespace" \
    -o 'jsonpath={.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].args[7]} {.spec.template.spec.containers[0].args[8]}'
  refuses "a scheduler needs an image" "scheduler.image" \
    run_helm template topolet "$kChart" --set scheduler.enabled=true
  refuses "its policies are in force" "$(by_policy topolet-zone-annotation)" \
    kube "$workdir" tenant create --dry-run=server -f "$(object zoned)"
  allows "objects can be written" kube "$workdir" admin create -f "$(object topology-n1)"
  allows "the chart is uninstalled" run_helm uninstall topolet --namespace "$namespace"
  says "the objects stay" n1 kube "$workdir" admin get "$resource" n1 -o 'jsonpath={.metadata.name}'
  check through "cluster: the policies do not" 20 logged \
    kube "$workdir" tenant create --dry-run=server -f "$(object zoned)"
}

# put_monitoring_kind KIND PLURAL: as the Prometheus operator defines them, but for their fields
put_monitoring_kind() {
  put "kind-$1" <<YAML
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: $2.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: $1, plural: $2}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
YAML
}

try_monitoring() {
  run_helm template topolet "$kChart" --namespace "$kNamespace" --set extender.enabled=true --set podMonitor.enabled=true \
    --set prometheusRule.enabled=true --show-only templates/monitoring.yaml 2>>"$logs/cluster.log" | put monitoring
  refuses "a PodMonitor needs the kinds of the Prometheus operator" 'no matches for kind "PodMonitor"' \
    kube "$workdir" admin apply --dry-run=server -f "$(object monitoring)"
  put_monitoring_kind PodMonitor podmonitors
  put_monitoring_kind PrometheusRule prometheusrules
  logged kube "$workdir" admin create -f "$(object kind-PodMonitor)" -f "$(object kind-PrometheusRule)"
  check through "cluster: with them, both are created" 20 logged kube "$workdir" admin apply -f "$(object monitoring)"
  says "with the alerts" "topolet topolet-extender" kube "$workdir" admin get prometheusrules.monitoring.coreos.com topolet \
    --namespace "$kNamespace" -o 'jsonpath={.spec.groups[*].name}'
  says "one for the agents and one for the extender" "topolet-agent topolet-extender" kube "$workdir" admin get \
    podmonitors.monitoring.coreos.com --namespace "$kNamespace" -o 'jsonpath={.items[*].metadata.name}'
}

# printed_row COLUMNS NAME: so many columns of the object, as kubectl prints them
printed_row() {
  kube "$workdir" admin get noderesourcetopologies.topology.node.k8s.io "$2" --no-headers |
    tr -s ' ' | cut -d ' ' -f "1-$1"
}

try_columns() {
  says "kubectl prints the policy and what is left of the first zones" "n1 single-numa-node 4 4" printed_row 4 n1
  says "and of eight with -o wide" CPUS-7 printed_column 10
}

# printed_column NUMBER: what kubectl calls it
printed_column() {
  kube "$workdir" admin get noderesourcetopologies.topology.node.k8s.io -o wide | sed -n 1p | tr -s ' ' | cut -d ' ' -f "$1"
}

make_unit_kubeconfigs() { KUBECONFIG=$workdir/admin.kubeconfig "$kManifests/agent-kubeconfig" "$workdir/units" "$@"; }

# unit_user NAME NODE: the user NAME has what agent-kubeconfig has made for NODE.
unit_user() {
  sed "s|/var/lib/topolet-agent/token|$workdir/units/$2/token|" "$workdir/units/$2/agent.kubeconfig" \
    >"$workdir/$1.kubeconfig"
}

# unit_token USER ARGUMENT…: asks for another token
unit_token() { kube "$workdir" "$1" create token topolet-agent --namespace "$kNamespace" "${@:2}"; }

try_units() {
  local policy
  policy=$(by_policy topolet-agent-token)
  allows "agent-kubeconfig makes what units need" make_unit_kubeconfigs n1 n2
  unit_user unit n1
  allows "an agent that is a unit lists pods" kube "$workdir" unit get pods --all-namespaces
  allows "it updates the object of its node" kube "$workdir" unit replace -f "$(object topology-n1)"
  refuses "but not that of another node" "$(by_policy topolet-agent-topology)" \
    kube "$workdir" unit replace -f "$(object topology-n2)"
  allows "it annotates its node" kube "$workdir" unit annotate --overwrite node n1 topolet.io/touched=unit
  refuses "but not another node" "$(by_policy topolet-agent-node)" \
    kube "$workdir" unit annotate node n2 topolet.io/touched=unit
  allows "it has its token replaced" unit_token unit --bound-object-kind Node --bound-object-name n1 --duration 2160h
  refuses "but not by one of another node" "$policy" unit_token unit --bound-object-kind Node --bound-object-name n2
  refuses "nor by one that is bound to nothing" "$policy" unit_token unit
  refuses "nor by one that lasts for longer" "$policy" \
    unit_token unit --bound-object-kind Node --bound-object-name n1 --duration 2161h
  refuses "nor by one of somebody else" 'cannot create resource "serviceaccounts/token"' \
    kube "$workdir" unit create token topolet-extender --namespace "$kNamespace"
  refuses "a pod's token is not replaced by one that outlives it" "$policy" \
    unit_token agent --bound-object-kind Node --bound-object-name n1
  refuses "nor one that names no node" "$policy" unit_token no-node
  write_token "$workdir" renewed "$(unit_token unit --bound-object-kind Node --bound-object-name n1)"
  allows "the other token serves as well" kube "$workdir" renewed annotate --overwrite node n1 topolet.io/touched=renewed
  try_lost_node
}

# The token of a Node ends with it, also where another Node has its name.
try_lost_node() {
  put lost <<'YAML'
{apiVersion: v1, kind: Node, metadata: {name: lost}}
YAML
  logged kube "$workdir" admin create -f "$(object lost)"
  allows "agent-kubeconfig makes more" make_unit_kubeconfigs lost
  unit_user lost lost
  allows "which serves while the Node is there" kube "$workdir" lost get node lost
  logged kube "$workdir" admin delete node lost
  logged kube "$workdir" admin create -f "$(object lost)"
  check through "cluster: and no longer, also where it is registered again" 30 \
    fails_with "You must be logged in" kube "$workdir" lost get node lost
  logged kube "$workdir" admin delete node lost
}
