import { isIPv4, isIPv6 } from 'node:net'

/**
 * An address or CIDR in the one form in which the proxy reads it, or undefined when it is neither.
 *
 * Strict, since tinyproxy only warns of an address it cannot read and goes on without it. IPv4 inside IPv6
 * is refused: clients are compared by the family they come with, so such a range would admit nobody.
 */
export function clientRange(text: string): string | undefined {
  const match = /^([0-9a-fA-F.:]+)(?:\/(0|[1-9][0-9]{0,2}))?$/.exec(text)
  const [, address = '', prefix] = match ?? []
  const bits = isIPv4(address) ? 32 : isIPv6(address) && !address.includes('.') ? 128 : undefined
  if (bits === undefined || isMapped(address)) return undefined
  if (prefix === undefined) return canonical(address)
  return Number(prefix) <= bits ? canonical(address) + '/' + prefix : undefined
}

/** `::ffff:0:0/96`, in any of its spellings. */
function isMapped(address: string): boolean {
  return isIPv6(address) && canonical(address).startsWith('::ffff:')
}

function canonical(address: string): string {
  return isIPv6(address) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address
}
