// The collections that the apiserver of the tests serves unless told otherwise.
#include "tests/cluster_api/object_store.hpp"

namespace topolet::testing {
namespace {

std::string event_mistake(const Json& event) {
  const std::string about = field_text(event, "involvedObject.namespace");
  const std::string own = metadata_text(event, "namespace");
  if (own == (about.empty() ? "default" : about)) return "";
  return "involvedObject.namespace: \"" + about + "\" does not go with the event's namespace \"" + own + '"';
}

bool is_quantity(const Json& resource, const char* field) {
  return resource.contains(field) && (resource.at(field).is_string() || resource.at(field).is_number_integer());
}

bool has_text(const Json& object, const char* field) {
  return object.is_object() && object.contains(field) && object.at(field).is_string();
}

std::string attributes_mistake(const Json& holder) {
  for (const Json& attribute : holder.value("attributes", Json::array())) {
    if (!has_text(attribute, "name") || !has_text(attribute, "value")) return "attributes: need a name and a value";
  }
  return "";
}

std::string zone_mistake(const Json& zone) {
  if (!has_text(zone, "name") || !has_text(zone, "type")) return "zones: need a name and a type";
  for (const Json& resource : zone.value("resources", Json::array())) {
    if (has_text(resource, "name") && is_quantity(resource, "capacity") && is_quantity(resource, "allocatable") &&
        is_quantity(resource, "available")) {
      continue;
    }
    return "zones.resources: need a name, and capacity, allocatable and available as quantities";
  }
  return attributes_mistake(zone);
}

std::string topology_mistake(const Json& topology) {
  if (!topology.contains("zones") || !topology.at("zones").is_array()) return "zones: Required value";
  for (const Json& zone : topology.at("zones")) {
    if (std::string mistake = zone_mistake(zone); !mistake.empty()) return mistake;
  }
  return attributes_mistake(topology);
}

}  // namespace

std::vector<Collection> default_collections() {
  return {
      {.path = "/api/v1/pods",
       .kind = "Pod",
       .is_namespaced = true,
       .selectable_fields = {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
                             "status.phase", "status.podIP", "status.nominatedNodeName"}},
      {.path = "/api/v1/nodes", .kind = "Node", .selectable_fields = {"spec.unschedulable"}},
      {.path = "/api/v1/events",
       .kind = "Event",
       .is_namespaced = true,
       .selectable_fields = {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
                             "involvedObject.uid", "reason", "reportingComponent", "source", "type"},
       .validate = event_mistake},
      {.path = "/apis/policy/v1/poddisruptionbudgets", .kind = "PodDisruptionBudget", .is_namespaced = true},
      {.path = "/apis/coordination.k8s.io/v1/leases",
       .kind = "Lease",
       .is_namespaced = true,
       .allows_unconditional_update = false},
      {.path = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies",
       .kind = "NodeResourceTopology",
       .is_custom = true,
       .allows_unconditional_update = false,
       .validate = topology_mistake},
  };
}

}  // namespace topolet::testing
