package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	agentNamespace = "topolet-system"
	agentAccount   = "topolet-agent"
	agentMilli     = 10
	agentMemory    = int64(48 << 20)
)

// registerAgent makes the pod that the agent of the node would be one of, as the DaemonSet's controller does, and has it
// run. It has the rights of deploy/kubernetes/rbac.yaml by the token of that pod, narrowed by policies.yaml.
func (s *Story) registerAgent(ctx context.Context, node *Node) error {
	no := false
	requests := resourcesOf(agentMilli, agentMemory)
	pods := s.client.CoreV1().Pods(agentNamespace)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "topolet-agent-" + node.Name, Namespace: agentNamespace},
		Spec: corev1.PodSpec{NodeName: node.Name, ServiceAccountName: agentAccount, AutomountServiceAccountToken: &no,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "agent", Image: s.options.Image,
				Resources: corev1.ResourceRequirements{Requests: requests}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err := pods.Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"status": {"phase": "Running"}}`),
		metav1.PatchOptions{}, "status"); err != nil {
		return err
	}
	for _, operation := range []map[string]any{
		{"op": "run_pod", "pod": string(pod.UID), "name": pod.Name, "namespace": pod.Namespace, "qos": "burstable"},
		{"op": "create", "pod": string(pod.UID), "container": "agent", "cpu_request_milli": agentMilli,
			"memory_request": agentMemory},
	} {
		if answer, err := node.apply(operation); err != nil || answer.Outcome == "denied" {
			return fmt.Errorf("%s has no room for the agent's pod: %s (%w)", node.Name, answer.Reason, err)
		}
	}
	node.kubeconfig, err = s.writeToken(ctx, node.Name, pod)
	return err
}

// writeToken writes a kubeconfig with a token as the kubelet asks for one for a pod. It names the pod and its node.
func (s *Story) writeToken(ctx context.Context, name string, pod *corev1.Pod) (string, error) {
	answer, err := s.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, agentAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{
				APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	base := filepath.Join(s.options.Directory, name+".agent")
	if err := os.WriteFile(base+".token", []byte(answer.Status.Token), 0o600); err != nil {
		return "", err
	}
	return base + ".kubeconfig", writeKubeconfig(base, s.config)
}

// writeKubeconfig writes BASE.kubeconfig, which says that the token is in BASE.token.
func writeKubeconfig(base string, config *rest.Config) error {
	file := clientcmdapi.NewConfig()
	file.Clusters["story"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: config.TLSClientConfig.CAFile,
		CertificateAuthorityData: config.TLSClientConfig.CAData}
	file.AuthInfos["agent"] = &clientcmdapi.AuthInfo{TokenFile: base + ".token"}
	file.Contexts["story"] = &clientcmdapi.Context{Cluster: "story", AuthInfo: "agent"}
	file.CurrentContext = "story"
	return clientcmd.WriteToFile(*file, base+".kubeconfig")
}
