{{- define "topolet.labels" -}}
app.kubernetes.io/name: topolet
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- define "topolet.agent.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:topolet-agent
{{- end }}

{{- define "topolet.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- /* A number in a file of values. */ -}}
{{- if kindIs "float64" $tag }}{{ $tag = int64 $tag }}{{ end -}}
{{ printf "%s:%s" .Values.image.repository (toString $tag) }}
{{- end }}

{{- /* Where pods may be: values is the component's part of the values, label what the node has to have beside that, and
spreads the component whose replicas shall be on different nodes. */ -}}
{{- define "topolet.placement" -}}
{{- with .values.tolerations -}}
tolerations:
{{- toYaml . | nindent 0 }}
{{ end -}}
nodeSelector:
  {{- toYaml (merge (dict "kubernetes.io/os" "linux") (default dict .label) (default dict .values.nodeSelector)) | nindent 2 }}
{{- if .values.affinity }}
affinity:
  {{- toYaml .values.affinity | nindent 2 }}
{{- else if .spreads }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "topolet.labels" .spreads | nindent 12 }}
{{- end }}
{{- end }}

{{- define "topolet.installer.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:topolet-installer
{{- end }}

{{- define "topolet.zoneWriters" -}}
{{- $extender := printf "system:serviceaccount:%s:topolet-extender" .Release.Namespace -}}
{{- $writers := default (list $extender) .Values.policies.zoneWriters -}}
[{{ range $i, $writer := $writers }}{{ if $i }}, {{ end }}'{{ $writer }}'{{ end }}]
{{- end }}

{{- define "topolet.metricsPort" -}}
{{- $port := regexFind "[0-9]+$" .Values.agent.metricsAddress -}}
{{- required "agent.metricsAddress: write ADDRESS:PORT, such as 0.0.0.0:9470" $port -}}
{{- end }}

{{- define "topolet.extender.metricsPort" -}}
{{- $port := regexFind "[0-9]+$" .Values.extender.metricsAddress -}}
{{- required "extender.metricsAddress: write ADDRESS:PORT, such as 0.0.0.0:9474" $port -}}
{{- end }}

{{- define "topolet.scheduler.image" -}}
{{- required "scheduler.image: write the image of kube-scheduler, of the same release as the cluster" .Values.scheduler.image -}}
{{- end }}

{{- define "topolet.scheduler.configuration" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceNamespace: {{ .Release.Namespace }}
  resourceName: topolet-scheduler
profiles:
- schedulerName: topolet
  pluginConfig:
  # Two schedulers must not fill the same nodes, as none knows what the other is about to bind: its pods go to nodes with
  # this label only, and a taint keeps others away from them.
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions:
            - {key: topolet.io/pool, operator: In, values: [topolet]}
extenders:
- urlPrefix: https://topolet-extender.{{ .Release.Namespace }}.svc:9473
  filterVerb: filter
  prioritizeVerb: prioritize
  bindVerb: bind
  # Without it pods are evicted for one that has no zone afterwards, again and again.
  preemptVerb: preempt
  # Beside 1 to 3 for each plugin of the scheduler.
  weight: 10
  nodeCacheCapable: true
  # A pod that the extender did not bind would have no zone.
  ignorable: false
  httpTimeout: 5s
  enableHTTPS: true
  tlsConfig:
    certFile: /etc/topolet/scheduler-certificates/tls.crt
    keyFile: /etc/topolet/scheduler-certificates/tls.key
    caFile: /etc/topolet/scheduler-certificates/ca.crt
{{- end }}

{{- /* The fields that the policies of the agent share. */ -}}
{{- define "topolet.agentPolicy" -}}
failurePolicy: Fail
matchConditions:
- name: is-the-agent
  expression: request.userInfo.username == '{{ include "topolet.agent.user" . }}'
variables:
{{ include "topolet.tokenNode" . }}
{{- end }}

{{- define "topolet.tokenNode" -}}
# The node that the token was made for, or its pod. Only tokens that are bound to one of these name one.
- name: tokenNode
  expression: request.userInfo.?extra['authentication.kubernetes.io/node-name'][0].orValue('')
{{- end }}

{{- define "topolet.binding" -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ . }}
  labels:
    {{- include "topolet.labels" "policies" | nindent 4 }}
spec:
  policyName: {{ . }}
  validationActions: [Deny]
{{- end }}

{{- define "topolet.crd.nameAndValue" -}}
type: array
items:
  type: object
  required: [name, value]
  properties:
    name: {type: string}
    value: {{ . }}
{{- end }}

{{- /* A column shows one value, so each zone has its own; those of most machines without -o wide. */ -}}
{{- define "topolet.crd.columns" -}}
{{- range $zone := until 8 }}
- name: CPUs-{{ $zone }}
  description: What another pod could still get in this zone, counted from 0.
  type: string
  jsonPath: '.zones[{{ $zone }}].resources[?(@.name=="cpu")].available'
  priority: {{ if ge $zone 2 }}1{{ else }}0{{ end }}
{{- end }}
- {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
{{- end }}

{{- define "topolet.crd.quantity" -}}
x-kubernetes-int-or-string: true
anyOf: [{type: integer}, {type: string}]
pattern: ^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?$
{{- end }}

{{- /* No list names its kind, so each is replaced as a whole. */ -}}
{{- define "topolet.crd.properties" -}}
apiVersion: {type: string}
kind: {type: string}
metadata: {type: object}
topologyPolicies:
  description: Deprecated; the attributes say it.
  type: array
  items: {type: string}
zones:
  description: Where resources are; zones of the type Node are NUMA nodes.
  type: array
  items:
    type: object
    required: [name, type]
    properties:
      name: {type: string}
      type: {type: string}
      parent:
        description: The name of the zone that this one is part of.
        type: string
      costs:
        description: The distance to other zones.
        {{- include "topolet.crd.nameAndValue" "{type: integer, format: int64}" | nindent 8 }}
      attributes:
        {{- include "topolet.crd.nameAndValue" "{type: string}" | nindent 8 }}
      resources:
        type: array
        items:
          type: object
          required: [name, capacity, allocatable, available]
          properties:
            name: {type: string}
            capacity:
              description: All that the zone has.
              {{- include "topolet.crd.quantity" . | nindent 14 }}
            allocatable:
              description: What pods may have of it.
              {{- include "topolet.crd.quantity" . | nindent 14 }}
            available:
              description: What another pod could still get.
              {{- include "topolet.crd.quantity" . | nindent 14 }}
{{- end }}
