/** All that goes into the disc a proxy's VM boots with. */
export type Seed = {
  /** `${uid}-g${generation}`: with another one cloud-init takes the machine for a new one and runs anew. */
  instanceId: string
  hostname: string
  /** The one network card that is configured; the guest finds it by this address, not by name. */
  mac: string
  proxy: {
    port: number
    /** Addresses or CIDRs that may use the proxy, IPv4, and IPv6 down to /64; never empty. */
    allow: string[]
    auth?: { username: string; password: string }
  }
  /** The same for our own prober, admitted beside `allow`. */
  probeFrom: string[]
  /** Decides how many clients the proxy serves at once; 512 unless given. */
  memoryMiB?: number
  /** The publisher's user-data, laid over our vendor-data; at most 16 KiB. */
  userData?: string
  /** Also ask for IPv6 addresses, by router advertisement and DHCPv6. */
  ipv6?: boolean
}
