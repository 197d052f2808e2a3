# shellcheck shell=bash disable=SC2034,SC2154 # constants and workdir are shared between the files
# A control plane without nodes: etcd, kube-apiserver and, if it is asked for, kube-scheduler, of one release.
#
#   use_cluster RELEASE                       all that follows is about this one of kClusterReleases; the first, unless told
#   build_cluster CACHE PROGRAM…              builds the programs, or takes them from the cache; they come first in PATH
#   start_control_plane DIRECTORY [OPTION…]   etcd and kube-apiserver; DIRECTORY/admin.kubeconfig may do everything
#   write_user DIRECTORY NAME USER [GROUP…]   writes DIRECTORY/NAME.kubeconfig, with a client certificate
#   write_token DIRECTORY NAME TOKEN          writes DIRECTORY/NAME.kubeconfig, with a token
#   kube DIRECTORY NAME ARGUMENT…             kubectl as DIRECTORY/NAME.kubeconfig says
#   start_scheduler DIRECTORY NAME CONFIGURATION [OPTION…]
#   stop_scheduler DIRECTORY NAME
#   stop_control_plane DIRECTORY              the schedulers too
#
# DIRECTORY holds all of it: keys, data, PROGRAM.log and PROGRAM.pid. If it is a workdir, remove_workdir ends whatever
# still runs there. Everything listens on 127.0.0.1.

kClusterReleases=(1.34 1.37)
declare -A kClusterPrograms

# The scheduler of 1.34 is built together with the plugin NodeResourceTopologyMatch, which is not to be had for 1.37.
use_cluster() {
  kClusterPrograms=(
    [etcd]=go.etcd.io/etcd/server/v3
    [kube-apiserver]=k8s.io/kubernetes/cmd/kube-apiserver
    [kubectl]=k8s.io/kubernetes/cmd/kubectl
  )
  case $1 in
    1.34)
      kClusterModule=tests/conformance/cluster kClusterVersion=v1.34.4
      kClusterPrograms+=([helm]=helm.sh/helm/v3/cmd/helm [kube-scheduler]=./kube-scheduler)
      ;;
    1.37)
      kClusterModule=tests/conformance/cluster-1.37 kClusterVersion=v1.37.2
      kClusterPrograms+=([kube-scheduler]=k8s.io/kubernetes/cmd/kube-scheduler)
      ;;
    *) die "no control plane of Kubernetes $1 is known here, but of ${kClusterReleases[*]}" ;;
  esac
}
use_cluster "${kClusterReleases[0]}"

# Programs that are built as modules do not know their version. Helm believes in Kubernetes 1.20 then.
cluster_link_flags() {
  local base=k8s.io/component-base/version.git helm=helm.sh/helm/v3/pkg/chartutil.k8sVersion major minor
  IFS=. read -r major minor _ <<<"${kClusterVersion#v}"
  printf '%s ' -s -w "-X ${base}Version=$kClusterVersion" "-X ${base}Major=$major" "-X ${base}Minor=$minor" \
    "-X ${helm}Major=$major" "-X ${helm}Minor=$minor"
}

# cluster_programs CACHE: prints the directory of the programs. What they are made of is part of its name.
cluster_programs() {
  local sum
  sum=$({
    cat "$kClusterModule"/go.{mod,sum}
    if [[ -d $kClusterModule/kube-scheduler ]]; then cat "$kClusterModule"/kube-scheduler/*.go; fi
    cluster_link_flags
    go env GOVERSION
  } | sha256sum)
  echo "$1/cluster-${sum:0:16}"
}

# fetch_cluster CACHE PROGRAM…: downloads the modules of those that are not built yet; fails if one is not available.
fetch_cluster() {
  local bin program packages=()
  bin=$(cluster_programs "$1")
  for program in "${@:2}"; do
    if [[ ! -x $bin/$program ]]; then packages+=("${kClusterPrograms[$program]}"); fi
  done
  ((${#packages[@]} == 0)) || fetch "$kClusterModule" "${packages[@]}"
}

build_cluster() {
  local cache=$1 bin program
  bin=$(cluster_programs "$cache")
  mkdir -p "$bin"
  for program in "${@:2}"; do
    [[ ! -x $bin/$program ]] || continue
    say "Building $program"
    build_in "$kClusterModule" build -ldflags "$(cluster_link_flags)" -o "$bin/$program.$$" \
      "${kClusterPrograms[$program]}"
    mv "$bin/$program.$$" "$bin/$program"
  done
  # Folders of other checkouts may be in use.
  touch "$bin"
  find "$cache" -maxdepth 1 -name 'cluster-*' -mtime +30 -exec rm -rf {} +
  export PATH=$bin:$PATH
}

# A port below those that the kernel gives to clients.
free_port() {
  local port
  while port=$((RANDOM % 10000 + 20000)) && (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  echo "$port"
}

# make_key FILE
make_key() { openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

make_authority() {
  make_key "$1/ca.key"
  openssl req -x509 -new -key "$1/ca.key" -subj /CN=topolet-cluster -days 2 -out "$1/ca.crt"
}

# make_certificate DIRECTORY NAME SUBJECT EXTENSION…: DIRECTORY/NAME.key and DIRECTORY/NAME.crt
make_certificate() {
  local directory=$1 name=$2 subject=$3
  make_key "$directory/$name.key"
  openssl req -new -key "$directory/$name.key" -subj "$subject" |
    openssl x509 -req -CA "$directory/ca.crt" -CAkey "$directory/ca.key" -days 2 -out "$directory/$name.crt" \
      -extfile <(printf '%s\n' "${@:4}") 2>/dev/null
}

# run_program DIRECTORY NAME PROGRAM ARGUMENT…: in the background and in a session of its own.
run_program() {
  local directory=$1 name=$2
  setsid "${@:3}" >>"$directory/$name.log" 2>&1 </dev/null &
  echo "$!" >"$directory/$name.pid"
  disown
}

# wait_for_program DIRECTORY NAME COMMAND…: waits until the command succeeds, but not for a program that has ended.
wait_for_program() {
  local directory=$1 name=$2
  if ! wait_until 120 answers_or_ended "$@" || ! process_mark "$(<"$directory/$name.pid")" >/dev/null; then
    tail -n 20 "$directory/$name.log" >&2
    die "$name did not start; the end of its log is above"
  fi
}

answers_or_ended() { "${@:3}" >/dev/null 2>&1 || ! process_mark "$(<"$1/$2.pid")" >/dev/null; }

# end_program DIRECTORY PROGRAM [NAME]
end_program() {
  local pid_file=$1/${3-$2}.pid
  [[ -f $pid_file ]] || return 0
  end_process "$(<"$pid_file")" "$2"
  rm "$pid_file"
}

start_control_plane() {
  local directory=$1
  mkdir -p "$directory"
  make_authority "$directory"
  start_etcd "$directory"
  start_apiserver "$@"
}

start_etcd() {
  local directory=$1 clients peers
  clients=http://127.0.0.1:$(free_port) peers=http://127.0.0.1:$(free_port)
  echo "$clients" >"$directory/etcd.address"
  run_program "$directory" etcd etcd --name topolet --data-dir "$directory/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls "$clients" --advertise-client-urls "$clients" \
    --listen-peer-urls "$peers" --initial-advertise-peer-urls "$peers" --initial-cluster "topolet=$peers"
  wait_for_program "$directory" etcd curl --fail --silent "$clients/health"
}

# start_apiserver DIRECTORY [OPTION…]: also after it was ended alone; kubeconfigs keep their address then.
start_apiserver() {
  local directory=$1
  if [[ ! -f $directory/kube-apiserver.crt ]]; then
    make_certificate "$directory" kube-apiserver /CN=kube-apiserver 'subjectAltName=IP:127.0.0.1,DNS:localhost'
    make_key "$directory/service-account.key"
    openssl pkey -in "$directory/service-account.key" -pubout -out "$directory/service-account.pub"
    free_port >"$directory/kube-apiserver.port"
    write_user "$directory" admin topolet-admin system:masters
  fi
  # It refuses to publish a loopback address as the service kubernetes, so nothing is published.
  run_program "$directory" kube-apiserver kube-apiserver --etcd-servers "$(<"$directory/etcd.address")" \
    --bind-address 127.0.0.1 --secure-port "$(<"$directory/kube-apiserver.port")" --endpoint-reconciler-type none \
    --tls-cert-file "$directory/kube-apiserver.crt" --tls-private-key-file "$directory/kube-apiserver.key" \
    --client-ca-file "$directory/ca.crt" --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
    --service-cluster-ip-range 10.96.0.0/24 --service-account-issuer https://kubernetes.default.svc \
    --service-account-signing-key-file "$directory/service-account.key" \
    --service-account-key-file "$directory/service-account.pub" --allow-privileged "${@:2}"
  wait_for_program "$directory" kube-apiserver kube "$directory" admin get --raw /readyz
}

# write_kubeconfig DIRECTORY NAME CREDENTIAL…: the lines of its user
write_kubeconfig() {
  local directory=$1 name=$2
  cat >"$directory/$name.kubeconfig" <<YAML
apiVersion: v1
kind: Config
current-context: topolet
contexts: [{name: topolet, context: {cluster: topolet, user: $name}}]
clusters:
- name: topolet
  cluster:
    server: https://127.0.0.1:$(<"$directory/kube-apiserver.port")
    certificate-authority: $directory/ca.crt
users:
- name: $name
  user:
$(printf '    %s\n' "${@:3}")
YAML
}

write_user() {
  local directory=$1 name=$2 subject=/CN=$3 group
  for group in "${@:4}"; do subject+=/O=$group; done
  make_certificate "$directory" "$name" "$subject" extendedKeyUsage=clientAuth
  write_kubeconfig "$directory" "$name" "client-certificate: $directory/$name.crt" "client-key: $directory/$name.key"
}

write_token() { write_kubeconfig "$1" "$2" "token: $3"; }

kube() { kubectl --kubeconfig "$1/$2.kubeconfig" --cache-dir "$1/kubectl" --request-timeout 60s "${@:3}"; }

# start_scheduler: CONFIGURATION must not name a kubeconfig. NAME tells several schedulers apart.
# $scheduler_qps are its requests in a second, $scheduler_user is the name of a kubeconfig.
start_scheduler() {
  local directory=$1 name=kube-scheduler-$2 configuration=$3 user=$1/${scheduler_user:-admin}.kubeconfig port
  port=$(free_port)
  {
    cat "$configuration"
    # Its own limit, 50 requests a second, would be what Passthrough waits for: it asks for each node of each pod.
    printf 'clientConnection: {kubeconfig: %s, qps: %d, burst: %d}\n' "$user" \
      "${scheduler_qps:-1000}" "$((2 * ${scheduler_qps:-1000}))"
  } >"$directory/$name.yaml"
  run_program "$directory" "$name" kube-scheduler --config "$directory/$name.yaml" --leader-elect=false \
    --bind-address 127.0.0.1 --secure-port "$port" --authentication-kubeconfig "$user" \
    --authorization-kubeconfig "$user" "${@:4}"
  wait_for_program "$directory" "$name" curl --fail --silent --insecure "https://127.0.0.1:$port/readyz"
}

stop_scheduler() { end_program "$1" kube-scheduler "kube-scheduler-$2"; }

stop_control_plane() {
  local pid_file
  for pid_file in "$1"/kube-scheduler-*.pid; do
    if [[ -f $pid_file ]]; then end_program "$1" kube-scheduler "$(basename "$pid_file" .pid)"; fi
  done
  end_program "$1" kube-apiserver
  end_program "$1" etcd
}
