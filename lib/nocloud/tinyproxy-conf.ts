import { clientRange } from './client-range.ts'
import type { Seed } from './seed.ts'
import { SeedError } from './seed-error.ts'

/**
 * The configuration of the forward proxy, line by line: admits only `allow` and `probeFrom`, to any destination.
 *
 * Why tinyproxy and not squid: Debian and Ubuntu package both; tinyproxy is a fifth of a MiB installed
 * (squid nine, Perl's DBI beside it), listens within milliseconds, lives in a few MiB, caches nothing, and its
 * whole access rule is the list below. CONNECT goes to every port, as plain requests do: whom the proxy
 * serves is the wall, and `allow` is never empty. The proxy does not announce itself to the sites (no Via).
 *
 * Source: tinyproxy.conf(5) of 1.11; the alphabets are those its parser takes.
 */
export function tinyproxyConf({ proxy, probeFrom, memoryMiB = 512 }: Seed): string[] {
  const { port, allow, auth } = proxy
  if (!isIntegerWithin(port, 1, 65_535)) {
    throw new SeedError('InvalidPort', 'proxy.port', 'an integer from 1 to 65535', port)
  }
  if (!isIntegerWithin(memoryMiB, 1, Number.MAX_SAFE_INTEGER)) {
    throw new SeedError('InvalidMemory', 'memoryMiB', 'a positive integer', memoryMiB)
  }
  if (allow.length === 0) throw new SeedError('EmptyAllow', 'proxy.allow', 'at least one address or CIDR')
  const ranges = [...rangesOf('proxy.allow', allow), ...rangesOf('probeFrom', probeFrom)]
  return directives([
    ['User', 'tinyproxy'],
    ['Group', 'tinyproxy'],
    ['Port', String(port)],
    ['Timeout', '600'],
    ['MaxClients', String(maxClients(memoryMiB))],
    // Without a log file it writes to the journal. Connections are not logged: they tell where clients go.
    ['LogLevel', 'Warning'],
    ['DisableViaHeader', 'Yes'],
    ...[...new Set(ranges)].map((range): Directive => ['Allow', range]),
    ...(auth ? [basicAuth(auth)] : []),
  ])
}

type Directive = [name: string, ...values: string[]]

/** A value with anything that could end it, or its line, never gets past this. */
function directives(list: Directive[]): string[] {
  for (const [name, ...values] of list) {
    if (!values.every((value) => /^[A-Za-z0-9.:/_-]+$/.test(value))) {
      throw new Error(`the value of ${name} was not checked`)
    }
  }
  return list.map((directive) => directive.join(' '))
}

/** A client costs a thread and two buffers, a quarter of a MiB at worst; the rest stays for the guest. */
function maxClients(memoryMiB: number): number {
  return Math.min(Math.max(memoryMiB, 64), 4096)
}

function rangesOf(field: string, texts: string[]): string[] {
  return texts.map((text, index) => {
    const read = clientRange(text)
    if ('range' in read) return read.range
    throw new SeedError('InvalidAllow', `${field}[${index}]`, read.wanted, text)
  })
}

/** The parser splits at white space and knows no escape. */
const credential = /^[A-Za-z0-9._-]+$/

/** Longer pairs are dropped by tinyproxy with a warning, and then nobody gets in. */
const credentialsMaxCharacters = 255

function basicAuth({ username, password }: { username: string; password: string }): Directive {
  const alphabet = 'one or more of A-Z a-z 0-9 . _ -'
  if (!credential.test(username)) {
    throw new SeedError('InvalidUsername', 'proxy.auth.username', alphabet, username)
  }
  if (!credential.test(password)) throw new SeedError('InvalidPassword', 'proxy.auth.password', alphabet)
  if (username.length + password.length > credentialsMaxCharacters) {
    const wanted = `at most ${credentialsMaxCharacters} characters together with the username`
    throw new SeedError('InvalidPassword', 'proxy.auth.password', wanted)
  }
  return ['BasicAuth', username, password]
}

function isIntegerWithin(value: number, low: number, high: number): boolean {
  return Number.isSafeInteger(value) && value >= low && value <= high
}
