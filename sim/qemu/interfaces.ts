import type { AgentInterface } from '../types.ts'

/** The address that QEMU's user network gives its one guest. */
const given = '10.0.2.15'

/**
 * What the agent listed, with one liberty: the address behind QEMU's user network, which nothing but QEMU can reach, is told as
 * the loopback address that is forwarded to it.
 */
export function reachable(interfaces: AgentInterface[], address: string): AgentInterface[] {
  return interfaces.map((one) => {
    const addresses = one['ip-addresses']
    if (!addresses) return one
    const told = addresses.map((entry) =>
      entry['ip-address'] === given ? { ...entry, 'ip-address': address, prefix: 8 } : entry,
    )
    return { ...one, 'ip-addresses': told }
  })
}
