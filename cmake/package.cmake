# Debian packages: `cpack -G DEB`, or scripts/package. Their files are those that `cmake --install` installs, with the
# prefix that the build was configured for.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME topolet)
set(CPACK_PACKAGE_CONTACT "${TOPOLET_PACKAGE_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL topolet topolet_package agent agent_package extender extender_package sdk sdk_package)
foreach(component topolet topolet_package)
  string(TOUPPER ${component} upper)
  set(CPACK_COMPONENT_${upper}_GROUP topolet)
endforeach()
foreach(component agent agent_package)
  string(TOUPPER ${component} upper)
  set(CPACK_COMPONENT_${upper}_GROUP topolet_agent)
endforeach()
foreach(component extender extender_package)
  string(TOUPPER ${component} upper)
  set(CPACK_COMPONENT_${upper}_GROUP topolet_extender)
endforeach()
foreach(component sdk sdk_package)
  string(TOUPPER ${component} upper)
  set(CPACK_COMPONENT_${upper}_GROUP topolet_dev)
endforeach()

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${TOPOLET_PACKAGE_REVISION})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_TOPOLET_PACKAGE_NAME topolet)
set(CPACK_DEBIAN_TOPOLET_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_TOPOLET_PACKAGE_SUGGESTS "containerd | cri-o, topolet-dev")
set(CPACK_DEBIAN_TOPOLET_DESCRIPTION [[
topology daemon between kubelet and container runtime
topoletd decides on which CPUs, and with memory from which NUMA nodes, each
Kubernetes container of a node runs. It passes every call between kubelet and
container runtime through, and adds its decision to those that create
containers.
.
The package has the daemon, its plugins numa, gpu, smt, load and foreign-zone, and
the command topolet, which shows and explains the decisions.]])

# What dpkg runs of each of the programs.
foreach(package topolet topolet-agent topolet-extender)
  string(TOUPPER ${package} upper)
  string(REPLACE - _ upper ${upper})
  foreach(script postinst prerm postrm)
    list(APPEND CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/deploy/control/${package}/${script})
  endforeach()
endforeach()

set(CPACK_DEBIAN_TOPOLET_AGENT_PACKAGE_NAME topolet-agent)
set(CPACK_DEBIAN_TOPOLET_AGENT_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_TOPOLET_AGENT_PACKAGE_RECOMMENDS topolet)
set(CPACK_DEBIAN_TOPOLET_AGENT_DESCRIPTION [[
topology daemon for Kubernetes nodes - metrics and live page
topoletd decides where the containers of a Kubernetes node run. This package
has the program that shows it: metrics for Prometheus, and a live page of the
machine with all containers. It decides nothing by itself.]])

set(CPACK_DEBIAN_TOPOLET_EXTENDER_PACKAGE_NAME topolet-extender)
set(CPACK_DEBIAN_TOPOLET_EXTENDER_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_TOPOLET_EXTENDER_DESCRIPTION [[
topology daemon for Kubernetes nodes - scheduler extender
topoletd decides where the containers of a Kubernetes node run. This package
has the program that lets kube-scheduler choose a NUMA zone along with the
node: a scheduler extender, of which a cluster needs one or two, usually as
pods. Nodes need it not.]])

set(CPACK_DEBIAN_TOPOLET_DEV_PACKAGE_NAME topolet-dev)
set(CPACK_DEBIAN_TOPOLET_DEV_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_TOPOLET_DEV_PACKAGE_RECOMMENDS "topolet, g++ | c++-compiler, cmake, pkg-config, libhwloc-dev")
set(CPACK_DEBIAN_TOPOLET_DEV_DESCRIPTION [[
topology daemon for Kubernetes nodes - headers for plugins
Plugins of topoletd decide where the containers of a Kubernetes node run. This
package has what it takes to write one: the headers of the plugin interface,
which need no library, their packages for CMake and pkg-config, a program that
checks a plugin, and examples.]])
include(CPack)
