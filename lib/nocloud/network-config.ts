import type { Seed } from './seed.ts'
import { SeedError } from './seed-error.ts'
import { yamlText } from './yaml-text.ts'

/**
 * One card with DHCP, found by its MAC.
 *
 * netplan asks for the lease by MAC too (ifupdown always does), so a replaced VM keeps its address. The card is
 * renamed, because ifupdown knows cards by name alone.
 *
 * Source: cloud-init documentation, "Networking config Version 2".
 */
export function networkConfig({ mac, ipv6 = false }: Seed): string {
  // An odd first octet is a multicast address, which no card can have.
  if (!/^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$/i.test(mac)) {
    throw new SeedError('InvalidMac', 'mac', 'six octets of two hexadecimal digits, the first one even', mac)
  }
  const card = {
    match: { macaddress: mac.toLowerCase() },
    'set-name': 'eth0',
    dhcp4: true,
    'dhcp-identifier': 'mac',
    ...(ipv6 ? { dhcp6: true, 'accept-ra': true } : {}),
  }
  return yamlText({ version: 2, ethernets: { eth0: card } })
}
