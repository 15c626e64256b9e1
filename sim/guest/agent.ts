import type { AgentAddress, AgentInterface } from '../types.ts'
import type { Card } from './network.ts'

/**
 * The interfaces as qemu-guest-agent lists them: loopback first, MAC in lower case, a link-local address beside the real one.
 * The simulator takes one liberty: the guest's IPv4 address is the loopback address its proxy really listens on.
 */
export function listInterfaces(options: {
  card: Card
  mac: string
  address: string
  hasDocker: boolean
}): AgentInterface[] {
  const { card, mac, address } = options
  const own: AgentAddress[] = [
    ...(card.isUp ? [ipv4(address, 8)] : []),
    { 'ip-address': linkLocal(mac), 'ip-address-type': 'ipv6', prefix: 64 },
  ]
  return [
    {
      name: 'lo',
      'hardware-address': '00:00:00:00:00:00',
      'ip-addresses': [ipv4('127.0.0.1', 8), { 'ip-address': '::1', 'ip-address-type': 'ipv6', prefix: 128 }],
      statistics: counters,
    },
    ...(options.hasDocker
      ? [
          {
            name: 'docker0',
            'hardware-address': '02:42:ac:11:00:01',
            'ip-addresses': [ipv4('172.17.0.1', 16)],
            statistics: counters,
          },
        ]
      : []),
    { name: card.name, 'hardware-address': mac.toLowerCase(), 'ip-addresses': own, statistics: counters },
  ]
}

const directions = ['rx', 'tx'].flatMap((way) =>
  ['bytes', 'dropped', 'errs', 'packets'].map((what) => `${way}-${what}`),
)
const counters: Record<string, number> = Object.fromEntries(directions.map((name) => [name, 0]))

function ipv4(address: string, prefix: number): AgentAddress {
  return { 'ip-address': address, 'ip-address-type': 'ipv4', prefix }
}

/** The address a card makes of its MAC: the universal bit turned, ff:fe in the middle. Source: RFC 4291, appendix A. */
function linkLocal(mac: string): string {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = mac.split(':').map((byte) => Number.parseInt(byte, 16))
  const groups = [((a ^ 2) << 8) | b, (c << 8) | 0xff, 0xfe00 | d, (e << 8) | f]
  return `fe80::${groups.map((group) => group.toString(16)).join(':')}`
}
