/* Capability "topolet.adjust/1" of a plugin: what else to set for a container, once its CPUs are chosen. Asked after
 * the pick, for every container whose CPUs topolet chose. */
#ifndef TOPOLET_ADJUST_H
#define TOPOLET_ADJUST_H

#include <topolet/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_ADJUST_ID "topolet.adjust/1"

/* Bounds of what one call may set. */
#define TOPOLET_ADJUST_MAX_FIELDS 64   /* environment variables and annotations together */
#define TOPOLET_ADJUST_MAX_KEY 256     /* bytes */
#define TOPOLET_ADJUST_MAX_VALUE 32768 /* bytes */
#define TOPOLET_ADJUST_MAX_DEVICES 1024
#define TOPOLET_ADJUST_MAX_TAGS 16
#define TOPOLET_ADJUST_MAX_TAG 256 /* bytes of a tag's key, with the plugin's id, and of its value */

/* Whom adjust() is asked for. A later one is shown as TOPOLET_ASKS_UPDATE. A plugin sets nothing for whom it does not
 * know what to set. */
typedef enum topolet_asks {
  TOPOLET_ASKS_CREATE = 0,  /* a container that is being created: all setters take effect */
  TOPOLET_ASKS_UPDATE = 1,  /* one that exists: environment and annotations stay as they are */
  TOPOLET_ASKS_SANDBOX = 2, /* a pod's sandbox; no host asks for one yet */
  TOPOLET_ASKS_UNPLACED = 3 /* a container whose CPUs topolet does not choose; no host asks for one yet */
} topolet_asks;

/* Where the kernel takes the memory of a container's processes from: the modes of set_mempolicy(2), by its numbers. */
typedef enum topolet_memory_mode {
  TOPOLET_MEMORY_PREFERRED = 1,          /* one node, and others when it is full */
  TOPOLET_MEMORY_BIND = 2,               /* these nodes only */
  TOPOLET_MEMORY_INTERLEAVE = 3,         /* page by page from each of the nodes */
  TOPOLET_MEMORY_LOCAL = 4,              /* the node of the CPU that asks; no nodes are named */
  TOPOLET_MEMORY_PREFERRED_MANY = 5,     /* these nodes, and others when they are full; Linux 5.15 */
  TOPOLET_MEMORY_WEIGHTED_INTERLEAVE = 6 /* as INTERLEAVE, in proportion to bandwidth; Linux 6.9 */
} topolet_memory_mode;

/* Flags of memory_policy(). */
#define TOPOLET_MEMORY_STATIC_NODES 1u /* the nodes stay when the container may use others; not with LOCAL */
#define TOPOLET_MEMORY_RELATIVE_NODES                                                                                 \
  2u                                     /* positions among the nodes that it may use; not with LOCAL or STATIC_NODES \
                                          */
#define TOPOLET_MEMORY_NUMA_BALANCING 4u /* pages may move to where they are used; only with BIND, PREFERRED_MANY */

/* Policies of sched(7), by the kernel's numbers. Those for real time are not known. */
typedef enum topolet_scheduler_class {
  TOPOLET_SCHEDULER_OTHER = 0,
  TOPOLET_SCHEDULER_BATCH = 3,
  TOPOLET_SCHEDULER_IDLE = 5
} topolet_scheduler_class;
#define TOPOLET_NICE_MIN (-20)
#define TOPOLET_NICE_MAX 19

/* Classes of ioprio_set(2), by the kernel's numbers. */
typedef enum topolet_io_class {
  TOPOLET_IO_REALTIME = 1,
  TOPOLET_IO_BEST_EFFORT = 2,
  TOPOLET_IO_IDLE = 3
} topolet_io_class;
#define TOPOLET_IO_PRIORITY_MAX 7

typedef struct topolet_adjust_request {
  uint32_t struct_size;
  uint32_t candidate;             /* position of the candidate that won in request->candidates */
  const topolet_request* request; /* borrowed for the call, as is this struct */
  int32_t mode;                   /* topolet_mode */
  int32_t asks;                   /* topolet_asks */
  topolet_set cpus;               /* the CPUs that were chosen; of a shared container those it may use now */
  topolet_set withheld;           /* kept idle for it */
  topolet_set memory;             /* memory nodes that mems() may name: those with memory, within the kubelet's bound */
} topolet_adjust_request;

/* Where adjust() puts its answer. Owned by the host. Outside the call and its thread its functions do nothing and
 * return TOPOLET_LATE. Setters copy. They return TOPOLET_OK; TOPOLET_INVALID, TOPOLET_OUT_OF_RANGE, TOPOLET_DUPLICATE
 * or TOPOLET_FORBIDDEN for a wrong answer, which costs the plugin its vote in this decision; TOPOLET_UNSUPPORTED for
 * what the host does not know; TOPOLET_LATE when the host has abandoned the call. To call one that has no effect for
 * whom adjust() is asked for is no fault. */
typedef struct topolet_adjust_sink topolet_adjust_sink;
struct topolet_adjust_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* context; /* the host's own */

  /* Binds the container's memory to these nodes, a part of `memory`. At most once a call. The bindings of several
   * plugins intersect; one that names another node, or would leave none, is dropped.
   * [decision] */
  int32_t (*mems)(const topolet_adjust_sink* sink, topolet_set nodes);

  /* Adds an environment variable. Each name once a call; not empty, in UTF-8, and without '=' and zero bytes. What the
   * pod sets itself stays; of several plugins that add a name the one of more weight wins (score.h). Counts at the
   * container's creation only. For PATH and names that begin with "LD_" the host logs a warning, once for each.
   * [decision] */
  int32_t (*env)(const topolet_adjust_sink* sink, topolet_str name, topolet_str value);

  /* Adds an annotation to the container. As for env(); '=' is allowed. Keys that begin with "io.kubernetes." or
   * "cdi.k8s.io/", or whose part before the slash is "kubernetes.io" or ends in ".kubernetes.io", are not a plugin's to
   * set: TOPOLET_FORBIDDEN, which is a wrong answer as well.
   * [decision] */
  int32_t (*annotation)(const topolet_adjust_sink* sink, topolet_str key, topolet_str value);

  /* Why, for people. Copied, and cut beyond 1,024 bytes; the last call counts. [decision] */
  int32_t (*reason)(const topolet_adjust_sink* sink, topolet_str reason);

  /* Says why adjust() is about to return TOPOLET_FAILED. Copies the message, and cuts it beyond 1,024 bytes; the last
   * call counts. [decision] */
  int32_t (*error)(const topolet_adjust_sink* sink, topolet_str message);

  /* Says that the container uses a device of the topology, by its PCI address or, without one, by the name of the OS
   * device. Each once a call. Kept as long as the container, and shown to all plugins in its ledger entry and, when it
   * is placed anew, in its workload: what its environment said is not known any more then. TOPOLET_UNKNOWN for any
   * other text: it is not kept, and no fault, as a device of the workload's `used_devices` may have been unplugged
   * meanwhile. What else there is to remember is for tag().
   * [decision] */
  int32_t (*uses)(const topolet_adjust_sink* sink, topolet_str device);

  /* Notes a value for the container, by the key "ID/`key`", where ID is the plugin's. Each key once a call; 1 byte or
   * more, in UTF-8; the value may be empty. At most TOPOLET_ADJUST_MAX_TAGS. Kept as long as the container and over
   * restarts of the host, until a later adjust() of this plugin sets any; the container's next attempt begins without.
   * Shown to all plugins in its ledger entry and, when it is placed anew, in its workload.
   * [decision] */
  int32_t (*tag)(const topolet_adjust_sink* sink, topolet_str key, topolet_str value);

  /* Sets a file of the container's cgroup (version 2), such as the request's `unified` does. Only "memory.high" is
   * known: where the kernel begins to reclaim the container's memory and slows it down. Its value is decimal bytes, 1
   * or more, or "max" for none; more than the memory limit is dropped. Any other key gets TOPOLET_UNSUPPORTED. Each key
   * once a call. What the pod sets itself stays, and of several plugins' values the first counts, as for env(). Kept as
   * long as the container, until it is set again. A container with TOPOLET_ENTRY_ADOPTED is left as it is.
   * [decision] */
  int32_t (*unified)(const topolet_adjust_sink* sink, topolet_str key, topolet_str value);

  /* Puts the container into a class of Intel's Resource Director Technology, by name; at most once a call, and
   * TOPOLET_ADJUST_MAX_KEY bytes. containerd and CRI-O know such classes, and refuse a container whose class they do
   * not have; other runtimes ignore it. TOPOLET_UNSUPPORTED, and nothing is set, where the kernel has no group of that
   * name in /sys/fs/resctrl, or where the runtime has refused a container of the class since topoletd started. What the
   * pod sets itself stays, and of several plugins' classes the first counts, as for env(). Counts at the container's
   * creation only. [decision] */
  int32_t (*rdt_class)(const topolet_adjust_sink* sink, topolet_str name);

  /* The next three set what only an NRI plugin of the runtime can: TOPOLET_UNSUPPORTED, and nothing is set, unless
   * daemon.front = nri and the runtime has the version of NRI that is named (containerd 2.2 has 0.10 or 0.11,
   * containerd 2.3 has 0.12, CRI-O 1.34 has 0.10, CRI-O 1.35 has 0.11), and for a value that the host does not know.
   * Each at most once a call. Of several plugins' values the first counts, as for env(). They count at the container's
   * creation only, for all of its processes, and its OCI runtime must know them: runc 1.2, and 1.4 for memory_policy();
   * older ones ignore them. In a container with a user namespace of its own the kernel refuses a nice below 0 and
   * TOPOLET_IO_REALTIME, and the container does not start. */

  /* Sets the memory policy: `mode` is a topolet_memory_mode, `nodes` one node for TOPOLET_MEMORY_PREFERRED, none for
   * TOPOLET_MEMORY_LOCAL, and one or more of the machine for others; `flags` are TOPOLET_MEMORY_.... TOPOLET_INVALID
   * where these contradict each other, TOPOLET_OUT_OF_RANGE for a node that the machine does not have. A policy with
   * nodes outside of `memory`, or of what is bound by mems() of any plugin, is dropped. NRI 0.12; TOPOLET_UNSUPPORTED
   * for a mode, too, that the kernel is too old for. [decision] */
  int32_t (*memory_policy)(const topolet_adjust_sink* sink, int32_t mode, topolet_set nodes, uint32_t flags);

  /* Sets the scheduler class, a topolet_scheduler_class, and the nice value: TOPOLET_NICE_MIN to TOPOLET_NICE_MAX, and
   * 0 for TOPOLET_SCHEDULER_IDLE; TOPOLET_OUT_OF_RANGE for others. NRI 0.11. [decision] */
  int32_t (*scheduler)(const topolet_adjust_sink* sink, int32_t scheduler_class, int32_t nice);

  /* Sets the I/O priority: `io_class` is a topolet_io_class, `priority` 0, the first to be served, to
   * TOPOLET_IO_PRIORITY_MAX, and 0 for TOPOLET_IO_IDLE; TOPOLET_OUT_OF_RANGE for others. NRI 0.10. [decision] */
  int32_t (*io_priority)(const topolet_adjust_sink* sink, int32_t io_class, int32_t priority);
};

typedef struct topolet_adjust {
  uint32_t struct_size;
  uint32_t reserved;

  /* Answers for the placement that was chosen. Setting nothing leaves all as it is. `request` and `sink` are borrowed
   * for the call. Returns TOPOLET_OK, or TOPOLET_FAILED to give up its vote.
   * [decision] */
  int32_t (*adjust)(const topolet_instance* instance, const topolet_adjust_request* request,
                    const topolet_adjust_sink* sink);
} topolet_adjust;

#ifdef __cplusplus
}
#endif

#endif
