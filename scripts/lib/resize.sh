# shellcheck shell=bash disable=SC2034,SC2154 # workdir, daemon, plugins and logs are shared between the files
# In-place resizes by a kubelet with an API server, of pods whose containers have CPUs of their own and no CFS quota
# (placement.exclusive-quota = drop).

kResizePrograms=(etcd kube-apiserver kubectl)
kResizeRelease=1.37

run_resize() {
  say "Resizing pods without a CFS quota (about two minutes)"
  use_cluster "$kResizeRelease"
  build_cluster "$cache" "${kResizePrograms[@]}"
  workdir=$(make_workdir "$$")
  mkdir "$workdir/objects"
  start_control_plane "$workdir" 2>>"$logs/resize.log"
  make_default_accounts
  start_runtime "$workdir" 2>>"$logs/resize.log"
  start_quota_topoletd drop
  start_resize_kubelet
  throttle_none
  resize_one
  resize_pair
  keep_quota_again
  end_program "$workdir" kubelet
  stop_control_plane "$workdir"
  close_workdir
  use_cluster "${kClusterReleases[0]}"
}

# start_quota_topoletd keep|drop: all CPUs may be exclusive, as there may be two only.
start_quota_topoletd() {
  mv "$workdir/topoletd.log" "$workdir/topoletd-before.log" 2>/dev/null || true
  run_program "$workdir" topoletd "$daemon" --config /dev/null --daemon.listen="unix://$workdir/topolet.sock" \
    --daemon.control="$workdir/control.sock" --daemon.runtime="unix://$workdir/containerd.sock" \
    --daemon.state-dir="$workdir/state-of-topolet" --daemon.plugin-dir="$plugins" --plugins.enable=numa \
    --placement.min-shared-cpus=0 --placement.exclusive-quota="$1" --placement.exclusive-namespaces=default
  wait_until 20 topolet_answers || die "topoletd did not start; see $workdir/topoletd.log"
}

start_resize_kubelet() {
  write_user "$workdir" kubelet system:node:topolet-node system:nodes
  start_kubelet "$workdir/topolet.sock" false none "$logs/resize-kubelet.log" --kubeconfig "$workdir/kubelet.kubeconfig"
  wait_until 60 node_is_ready topolet-node || die "the kubelet's node is not Ready; see $logs/resize-kubelet.log"
}

# make_limited_pod NAME CONTAINER=CPU…: each as busy as it may be, with several processes. $pod_annotations are its own.
make_limited_pod() {
  local name=$1 container
  {
    cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $name, namespace: default${pod_annotations:+, annotations: {$pod_annotations\}}}
spec:
  nodeName: topolet-node
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  automountServiceAccountToken: false
  containers:
YAML
    for container in "${@:2}"; do
      cat <<YAML
  - name: ${container%=*}
    image: $kStoryImage
    imagePullPolicy: Never
    command: [sh, -c, "for i in 1 2 3 4; do while :; do :; done & done; wait"]
    resources: {requests: {cpu: "${container#*=}", memory: 64Mi}, limits: {cpu: "${container#*=}", memory: 64Mi}}
YAML
    done
  } >"$(object "$name")"
  logged kube "$workdir" admin create -f "$(object "$name")"
}

# resize POD CONTAINER RESOURCES
resize() {
  logged kube "$workdir" admin patch pod "$1" --subresource resize --patch \
    "{\"spec\": {\"containers\": [{\"name\": \"$2\", \"resources\": {\"requests\": {$3}, \"limits\": {$3}}}]}}"
}

# pod_field POD JSONPATH
pod_field() { kube "$workdir" admin get pod "$1" -o "jsonpath={$2}" 2>/dev/null; }

# shows_limit POD CONTAINER RESOURCE AMOUNT: in its status, and no resize is under way or waits.
shows_limit() {
  [[ $(pod_field "$1" ".status.containerStatuses[?(@.name==\"$2\")].resources.limits.$3") == "$4" ]] &&
    [[ -z $(pod_field "$1" '.status.conditions[?(@.type=="PodResizeInProgress")].type') ]] &&
    [[ -z $(pod_field "$1" '.status.conditions[?(@.type=="PodResizePending")].type') ]]
}

# cpu_cgroup POD CONTAINER: prints the directory of the container's cgroup, in the hierarchy that has quotas; its pod's is
# the one above.
cpu_cgroup() {
  local id pid path
  id=$(pod_field "$1" ".status.containerStatuses[?(@.name==\"$2\")].containerID")
  id=${id#containerd://}
  [[ -n $id ]] || return 1
  pid=$(ctr --address "$workdir/containerd.sock" --namespace k8s.io tasks list 2>/dev/null | awk -v id="$id" '$1 == id { print $2 }')
  [[ -n $pid ]] || return 1
  path=$(awk -F: '$2 ~ /(^|,)cpu(,|$)/ { print $3 }' "/proc/$pid/cgroup")
  if [[ -n $path ]]; then
    echo "/sys/fs/cgroup/cpu$path"
  else
    echo "/sys/fs/cgroup$(awk -F: '$1 == 0 { print $3 }' "/proc/$pid/cgroup")"
  fi
}

# Prints the quota in µs, or max.
quota_in() {
  if [[ -f $1/cpu.max ]]; then
    awk '{ print $1 }' "$1/cpu.max"
  else
    sed 's/^-1$/max/' "$1/cpu.cfs_quota_us"
  fi
}

# has_quotas POD CONTAINER QUOTA QUOTA-OF-POD
has_quotas() {
  local cgroup
  cgroup=$(cpu_cgroup "$1" "$2") && [[ "$(quota_in "$cgroup") $(quota_in "${cgroup%/*}")" == "$3 $4" ]]
}

# was_never_throttled POD CONTAINER SECONDS: for as long, in its own cgroup and in the pod's.
was_never_throttled() {
  local cgroup before
  cgroup=$(cpu_cgroup "$1" "$2") || return 1
  before=$(throttled_in "$cgroup")
  sleep "$3"
  [[ $(throttled_in "$cgroup") == "$before" ]]
}

throttled_in() { awk '$1 == "nr_throttled" { print FILENAME, $2 }' "$1/cpu.stat" "${1%/*}/cpu.stat"; }

# It has a whole CPU alone, and would be throttled for half of the time.
throttle_none() {
  pod_annotations='topolet.io/cpus: exclusive' make_limited_pod half main=500m
  check through "resize: half a CPU rounded up has no quota" 60 has_quotas half main max max
  check through "resize: and is not throttled" 0 was_never_throttled half main 5
  logged kube "$workdir" admin delete pod half
}

resize_one() {
  make_limited_pod busy main=1
  check through "resize: an exclusive container and its pod have no quota" 60 has_quotas busy main max max
  check through "resize: its status shows its limit" 30 shows_limit busy main cpu 1
  check through "resize: it is not throttled" 0 was_never_throttled busy main 10
  resize busy main '"memory": "96Mi"'
  check through "resize: of memory, it ends, and the status shows the limit" 60 shows_limit busy main memory 96Mi
  check through "resize: of memory: no quota comes of it" 10 has_quotas busy main max max
  resize busy main '"cpu": "2"'
  check through "resize: of CPUs, it ends, and the status shows the limit" 60 shows_limit busy main cpu 2
  check through "resize: of CPUs: no quota comes of it" 10 has_quotas busy main max max
  check through "resize: of CPUs: it is not throttled" 0 was_never_throttled busy main 5
  resize busy main '"cpu": "1500m"'
  check through "resize: to a part of a CPU, it ends, and the status shows the limit" 60 shows_limit busy main cpu 1500m
  check through "resize: to a part of a CPU: quotas come back" 10 has_quotas busy main 150000 150000
  logged kube "$workdir" admin delete pod busy
}

# One of the two has no CPUs of its own, so that the pod's quota bounds it.
resize_pair() {
  make_limited_pod pair alone=1 sharing=500m
  check through "resize: beside a container that shares, the pod keeps its quota" 60 has_quotas pair alone max 150000
  check through "resize: and so does that one" 10 has_quotas pair sharing 50000 150000
  logged kube "$workdir" admin delete pod pair
}

keep_quota_again() {
  make_limited_pod kept main=1
  check through "resize: the next one has no quota either" 60 has_quotas kept main max max
  end_program "$workdir" kubelet
  start_resize_kubelet
  check through "resize: nor after a restart of the kubelet" 10 has_quotas kept main max max
  end_program "$workdir" topoletd
  start_quota_topoletd keep
  check through "resize: with keep, quotas come back" 20 has_quotas kept main 100000 100000
  end_program "$workdir" topoletd
  start_quota_topoletd drop
  check through "resize: with drop, those of one that runs go" 20 has_quotas kept main max max
  resize kept main '"memory": "80Mi"'
  check through "resize: a resize ends then too" 60 shows_limit kept main memory 80Mi
  check through "resize: and leaves no quota" 10 has_quotas kept main max max
  logged kube "$workdir" admin delete pod kept
}
