import ipaddr from 'ipaddr.js'

/** Whom a proxy serves, and where it listens: what its configuration file says, read as the program reads it. */
export type ProxyPolicy = {
  program: 'tinyproxy' | 'squid'
  port: number
  /** Addresses it binds to; none means all. */
  listens: string[]
  /** The first that matches decides; without any rule everybody is served, else what none matches is refused. */
  rules: AccessRule[]
  credentials: { username: string; password: string }[]
  /** Ports CONNECT may go to; none means all. */
  connectPorts: number[]
}

export type AccessRule = {
  allow: boolean
  from: string /** Holds for CONNECT to other ports than these only. */
  exceptPorts?: number[]
}

export type ProxyRequest = {
  client: string
  /** Of the Proxy-Authorization header; `undefined`: there is none. */
  credentials?: { username: string; password: string }
  /** The port of a CONNECT. */
  connectPort?: number
}

export type ProxyVerdict = { status: 200 | 401 | 403 | 407; reason: string }

/** What the proxy says to a request before it looks at the destination. The texts are those of tinyproxy 1.11.1. */
export function judgeProxyRequest(policy: ProxyPolicy, request: ProxyRequest): ProxyVerdict {
  if (!isAdmitted(policy.rules, request)) return { status: 403, reason: 'Access denied' }
  if (policy.credentials.length > 0) {
    const { credentials } = request
    if (!credentials) return { status: 407, reason: 'Proxy Authentication Required' }
    const known = policy.credentials.some(
      ({ username, password }) => username === credentials.username && password === credentials.password,
    )
    if (!known) return { status: 401, reason: 'Unauthorized' }
  }
  const { connectPort } = request
  const isBlocked =
    connectPort !== undefined && policy.connectPorts.length > 0 && !policy.connectPorts.includes(connectPort)
  return isBlocked ? { status: 403, reason: 'Access violation' } : { status: 200, reason: 'OK' }
}

function isAdmitted(rules: AccessRule[], request: ProxyRequest): boolean {
  if (rules.length === 0) return true
  const rule = rules.find(({ from, exceptPorts }) => {
    const isElsewhere = request.connectPort !== undefined && !exceptPorts?.includes(request.connectPort)
    return isWithin(request.client, from) && (exceptPorts === undefined || isElsewhere)
  })
  return rule?.allow ?? false
}

/** Whether an address lies in a range, which is an address, a CIDR, or a name of this machine. Other names match nobody. */
function isWithin(address: string, range: string): boolean {
  if (range === 'all') return true
  const named = range === 'localhost' ? ['127.0.0.1', '::1'] : [range]
  return named.some((text) => {
    const [base = '', bits] = text.split('/')
    if (!ipaddr.isValid(base) || !ipaddr.isValid(address)) return false
    // An IPv4 address may come dressed as an IPv6 one.
    const [client, from] = [ipaddr.process(address), ipaddr.process(base)]
    if (client.kind() !== from.kind()) return false
    const width = from.kind() === 'ipv4' ? 32 : 128
    return client.match(from, bits === undefined ? width : Number(bits))
  })
}
