import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** A network interface as a guest tells of it; lib/proxmox's AgentInterface is one. */
type Told = { mac?: string; addresses: readonly { address: string }[] }

/** Which addresses count; a cluster of the configuration says so. Its own doors are nobody's proxy. */
type Wanted = {
  ipv6: boolean
  addressRanges?: string[] | undefined
  endpoints?: readonly { url: string }[]
}

const NEVER_GLOBAL = new Set(['loopback', 'linkLocal', 'multicast', 'unspecified', 'broadcast', 'reserved'])
// Of IPv6 the other way round: many of its ranges are another way of writing an IPv4 address, the loopback one too.
const GLOBAL_V6 = ipaddr.IPv6.parseCIDR('2000::/3')
const TUNNELS = new Set(['6to4', 'teredo', 'reserved'])

/** The first usable address on the interface with our MAC; a bridge inside the guest, or another's MAC, is nothing to us. */
export function pickAddress(interfaces: readonly Told[], mac: string, wanted: Wanted): string | undefined {
  const usable = usableAddresses(interfaces, mac, wanted)
  return usable.find((text) => ipaddr.IPv4.isValid(text)) ?? usable[0]
}

/** Every address at which the proxy may be, in the one spelling that addresses are compared by. */
export function usableAddresses(
  interfaces: readonly Told[],
  mac: string,
  { ipv6, addressRanges, endpoints = [] }: Wanted,
): string[] {
  const doors = new Set(endpoints.map(({ url }) => new URL(url).hostname.replace(/^\[|\]$/g, '')))
  return interfaces
    .filter((one) => one.mac?.toLowerCase() === mac)
    .flatMap(({ addresses }) => addresses.map(({ address }) => address))
    .filter((text) => isUsable(text, addressRanges) && (ipv6 || ipaddr.IPv4.isValid(text)))
    .map((text) => ipaddr.parse(text).toString())
    .filter((text) => !doors.has(text))
}

function isUsable(text: string, ranges: readonly string[] | undefined): boolean {
  // ipaddr.js alone also takes the short forms of old, such as 10.1 for 10.0.0.1. And no zone: `%eth0` is the guest's own affair.
  if (isIP(text) === 0 || text.includes('%') || !ipaddr.isValid(text)) return false
  const parsed = ipaddr.parse(text)
  if (parsed.range() === 'ipv4Mapped') return false
  if (!ranges) return isGlobal(parsed)
  return ranges.some((range) => {
    const [network, bits] = ipaddr.parseCIDR(range)
    return network.kind() === parsed.kind() && parsed.match(network, bits)
  })
}

function isGlobal(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  const range = address.range()
  if (address instanceof ipaddr.IPv4) return !NEVER_GLOBAL.has(range)
  return range === 'uniqueLocal' || (address.match(GLOBAL_V6) && !TUNNELS.has(range))
}
