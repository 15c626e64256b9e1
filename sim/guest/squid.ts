import ipaddr from 'ipaddr.js'
import { DaemonRefusal } from './daemon-refusal.ts'
import type { AccessRule, ProxyPolicy } from './policy.ts'

export const squidConf = '/etc/squid/squid.conf'

/** What the Debian package brings, as far as it decides anything. */
export const squidPackaged = 'http_access allow localhost\nhttp_access deny all\nhttp_port 3128\n'

/** Directives that change nothing about who is served. */
const harmless =
  /^(?:acl|http_access|http_port|include|cache|cache_dir|cache_mem|coredump_dir|refresh_pattern|visible_hostname|via|forwarded_for|logfile_rotate|access_log|cache_log|cache_store_log|pid_filename|shutdown_lifetime|dns_v4_first|max_filedescriptors|maximum_object_size|request_header_access|reply_header_access)$/

type Acl =
  | { kind: 'src'; ranges: string[] }
  | { kind: 'port'; ports: number[] }
  | { kind: 'connect' }
  | { kind: 'never' }

/**
 * Reads the part of squid.conf that a plain forward proxy needs: ports, and access by client address and CONNECT port. Everything
 * else that would change who is served is refused rather than ignored. @throws {DaemonRefusal}
 */
export function parseSquidConf(text: string): ProxyPolicy {
  const policy: ProxyPolicy = {
    program: 'squid',
    port: 0,
    listens: [],
    rules: [],
    credentials: [],
    connectPorts: [],
  }
  const acls = new Map<string, Acl>([
    ['all', { kind: 'src', ranges: ['all'] }],
    // Built in as well, and of no concern to a request that goes through.
    ...['manager', 'to_localhost', 'to_linklocal'].map((name): [string, Acl] => [name, { kind: 'never' }]),
    ['localhost', { kind: 'src', ranges: ['127.0.0.1', '::1'] }],
  ])
  for (const line of text.split('\n').map((raw) => raw.replace(/(^|\s)#.*/, '').trim())) {
    const [name = '', ...values] = line.split(/\s+/)
    if (line === '') continue
    if (name === 'http_port') {
      const [, host, port] = /^(?:\[?(.*?)\]?:)?(\d+)$/.exec(values[0] ?? '') ?? []
      if (!port || Number(port) > 65535) throw fatal(line)
      policy.port = Number(port)
      if (host) policy.listens.push(host)
    } else if (name === 'acl') addAcl(acls, values, line)
    else if (name === 'http_access') policy.rules.push(...toRules(acls, values, line))
    else if (!harmless.test(name)) throw fatal(`${line} (nothing the simulator's squid knows)`)
  }
  if (policy.port === 0) throw new DaemonRefusal('FATAL: No HTTP, HTTPS, or FTP ports configured')
  // Without a rule that ends the list, squid refuses.
  policy.rules.push({ allow: false, from: 'all' })
  return policy
}

function addAcl(acls: Map<string, Acl>, [name = '', type, ...values]: string[], line: string): void {
  const old = acls.get(name)
  if (type === 'src') {
    const ranges = values.map((value) => value.toLowerCase())
    if (!ranges.every((range) => ipaddr.isValid(range) || ipaddr.isValidCIDR(range))) throw fatal(line)
    acls.set(name, { kind: 'src', ranges: [...(old?.kind === 'src' ? old.ranges : []), ...ranges] })
  } else if (type === 'port') {
    acls.set(name, {
      kind: 'port',
      ports: [...(old?.kind === 'port' ? old.ports : []), ...values.map(Number)],
    })
  } else if (type === 'method' && values.join() === 'CONNECT') {
    acls.set(name, { kind: 'connect' })
  } else throw fatal(line)
}

function toRules(acls: Map<string, Acl>, [verb, ...names]: string[], line: string): AccessRule[] {
  if (verb !== 'allow' && verb !== 'deny') throw fatal(line)
  const wanted = names.map((name) => ({
    negated: name.startsWith('!'),
    acl: acls.get(name.replace('!', '')),
  }))
  if (wanted.some(({ acl }) => !acl)) throw fatal(line)
  if (wanted.some(({ negated, acl }) => !negated && acl?.kind === 'never')) return []
  const ports = wanted.find(({ negated, acl }) => negated && acl?.kind === 'port')?.acl
  // "deny !Safe_ports" speaks of plain requests too, whose port is not looked at here.
  if (ports?.kind === 'port' && !wanted.some(({ acl }) => acl?.kind === 'connect')) return []
  const sources = wanted.flatMap(({ acl }) => (acl?.kind === 'src' ? acl.ranges : []))
  const from = sources.length > 0 ? sources : ['all']
  return from.map((range) => ({
    allow: verb === 'allow',
    from: range,
    ...(ports?.kind === 'port' && { exceptPorts: ports.ports }),
  }))
}

function fatal(line: string): DaemonRefusal {
  return new DaemonRefusal(`FATAL: Bungled ${squidConf}: ${line}`)
}
