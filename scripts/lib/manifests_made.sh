# shellcheck shell=bash disable=SC2034,SC2154 # shared between the files
# The manifests in deploy/kubernetes, made from the chart beside them.

kManifests=deploy/kubernetes
kChart=$kManifests/chart
kRules=deploy/monitoring/topolet.rules.yaml
# In the order in which they are applied.
kManifestNames=(crd rbac policies flowschema agent agent-token installer extender scheduler-extender)
kNamespace=topolet-system
kAgentUser=system:serviceaccount:$kNamespace:topolet-agent
kExtenderUser=system:serviceaccount:$kNamespace:topolet-extender

# render_manifest NAME: prints deploy/kubernetes/NAME.yaml as the chart has it.
render_manifest() {
  printf '# Made by scripts/manifests from chart/templates/%s.yaml; change that instead.\n' "$1"
  helm template topolet "$kChart" --namespace "$kNamespace" --set namespace.create=true --set crd.keep=false \
    --set installer.enabled=true --set agent.renewsTokens=true --set extender.enabled=true --set scheduler.enabled=true \
    --set scheduler.image="registry.k8s.io/kube-scheduler:$kClusterVersion" --show-only "templates/$1.yaml" | sed '1{/^---$/d}; /^# Source: /d'
}

# A file is replaced only by one that was made whole.
write_manifests() {
  local name made
  made=$(mktemp)
  for name in "${kManifestNames[@]}"; do
    if ! render_manifest "$name" >"$made"; then
      rm -f "$made"
      return 1
    fi
    cat "$made" >"$1/$name.yaml"
  done
  rm -f "$made"
}

# Helm reads no file outside of the chart.
copy_rules() { cp "$kRules" "$kChart/${kRules##*/}"; }

# manifests_are_current: whether the files in the tree are those that the chart makes.
manifests_are_current() {
  local made name code=0
  made=$(mktemp -d)
  write_manifests "$made" || code=1
  for name in "${kManifestNames[@]}"; do diff -u "$kManifests/$name.yaml" "$made/$name.yaml" >&2 || code=1; done
  rm -rf "$made"
  diff -u "$kChart/${kRules##*/}" "$kRules" >&2 || code=1
  return "$code"
}
