/** Reads that need root: pveproxy hands them to pvedaemon of its node. Source: the registrations listed in proxmox-schema.json. */
const protectedReads = [
  /^\/+cluster\/status$/,
  /^\/+nodes\/([^/]+)\/qemu$/,
  /^\/+nodes\/([^/]+)\/qemu\/\d+\/status\/current$/,
  /^\/+nodes\/([^/]+)\/qemu\/\d+\/agent\/[^/]+$/,
  /^\/+nodes\/([^/]+)\/tasks\/[^/]+\/(?:status|log)$/,
  /^\/+nodes\/([^/]+)\/storage(?:\/[^/]+\/(?:status|content).*)?$/,
]

/** Whether pvedaemon of the receiving node carries out the call; every change is its work. */
export function isDaemonCall(call: { node: string; method: string; path: string }): boolean {
  const target = /^\/+nodes\/([^/]+)/.exec(call.path)?.[1]
  if (target !== undefined && target !== call.node && target !== 'localhost') return false
  return call.method !== 'GET' || protectedReads.some((pattern) => pattern.test(call.path))
}
