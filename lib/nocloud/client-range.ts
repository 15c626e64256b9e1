import { BlockList, isIPv4, isIPv6 } from 'node:net'

/** A range in the form the proxy takes, or what was wanted instead. */
export type ClientRange = { range: string } | { wanted: string }

/**
 * Reads an address or CIDR of clients, and refuses what tinyproxy would take for something else:
 *
 * - what it cannot read, it only warns of and goes on without;
 * - IPv4 clients are to it `::ffff:a.b.c.d`, so `::/0` admits all of IPv4 as well;
 * - up to 1.11.1 (Debian 12, Ubuntu 24.04) an IPv6 client that comes after an IPv4 one is judged with the lower
 *   half of an earlier client's address, so a range narrower than /64 refuses its own and admits neighbours.
 *
 * Source: tried with 1.11.1; issue 495 of tinyproxy/tinyproxy.
 */
export function clientRange(text: string): ClientRange {
  const [, address = '', prefix] = /^([0-9a-fA-F.:]+)(?:\/(0|[1-9][0-9]{0,2}))?$/.exec(text) ?? []
  if (isIPv4(address)) return prefix === undefined || Number(prefix) <= 32 ? { range: text } : unreadable
  if (!isIPv6(address)) return unreadable
  if (holds('::ffff:0:0', 96, address)) return { wanted: 'IPv4 written as IPv4' }
  if (Number(prefix) > 128) return unreadable
  if (prefix === undefined || Number(prefix) > 64) {
    return { wanted: 'IPv6 as a CIDR no narrower than /64, since tinyproxy mixes up the rest' }
  }
  if (holds(address, Number(prefix), '::ffff:0:0')) {
    return { wanted: 'IPv6 without ::ffff:0:0/96, which is all of IPv4; 2000::/3 is the public internet' }
  }
  return { range: `${new URL(`http://[${address}]`).hostname.slice(1, -1)}/${prefix}` }
}

const unreadable = { wanted: 'an IPv4 or IPv6 address or CIDR' }

function holds(network: string, prefix: number, address: string): boolean {
  const list = new BlockList()
  list.addSubnet(network, prefix, 'ipv6')
  return list.check(address, 'ipv6')
}
