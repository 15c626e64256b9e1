import ipaddr from 'ipaddr.js'
import { DaemonRefusal } from './daemon-refusal.ts'
import type { AccessRule, ProxyPolicy } from './policy.ts'

export const tinyproxyConf = '/etc/tinyproxy/tinyproxy.conf'

/** What the Debian package brings, as far as it decides anything. */
export const tinyproxyPackaged =
  'User tinyproxy\nGroup tinyproxy\nPort 8888\nTimeout 600\nMaxClients 100\nAllow 127.0.0.1\nAllow ::1\nViaProxyName "tinyproxy"\n'

const string = '"[^"]+"'
const number = '[0-9]+'
const word = '[-a-z0-9._]+'
const bool = '(?:yes|on|no|off)'
const address = '(?:[0-9]+\\.[0-9]+\\.[0-9]+\\.[0-9]+|[0-9a-f:.]*:[0-9a-f:.]*)'
const range = `(?:${address}(?:/[0-9]+)?|${word})`

/** The values each directive takes. Source: tinyproxy 1.11.1, tried directive by directive with the real program. */
const directives: Record<string, string> = {
  ...Object.fromEntries(
    [
      'logfile',
      'pidfile',
      'anonymous',
      'viaproxyname',
      'defaulterrorfile',
      'stathost',
      'statfile',
      'filter',
      'reversebaseurl',
    ].map((name) => [name, string]),
  ),
  ...Object.fromEntries(
    [
      'xtinyproxy',
      'syslog',
      'bindsame',
      'disableviaheader',
      'filterurls',
      'filterextended',
      'filtercasesensitive',
      'filterdefaultdeny',
      'reverseonly',
      'reversemagic',
    ].map((name) => [name, bool]),
  ),
  ...Object.fromEntries(
    [
      'port',
      'maxclients',
      'timeout',
      'connectport',
      'maxspareservers',
      'minspareservers',
      'startservers',
      'maxrequestsperchild',
    ].map((name) => [name, number]),
  ),
  ...Object.fromEntries(['user', 'group'].map((name) => [name, word])),
  ...Object.fromEntries(['listen', 'bind'].map((name) => [name, address])),
  ...Object.fromEntries(['allow', 'deny'].map((name) => [name, range])),
  basicauth: `${word}\\s+${word}`,
  errorfile: `${number}\\s+${string}`,
  addheader: `${string}\\s+${string}`,
  reversepath: `${string}(?:\\s+${string})?`,
  upstream: '(?:none\\s+"[^"]+"|(?:http|socks4|socks5)\\s+\\S+(?:\\s+"[^"]+")?)',
  loglevel: '(?:critical|error|warning|notice|connect|info)',
  filtertype: '(?:bre|ere|fnmatch)',
}

/** Accounts a Debian machine with the package has. */
const accounts = ['root', 'tinyproxy', 'nobody', 'nogroup', 'proxy', 'www-data', 'daemon']

/** Reads tinyproxy.conf as tinyproxy 1.11.1 does, case and blanks included. @throws {DaemonRefusal} */
export function parseTinyproxyConf(text: string, hasFile: (path: string) => boolean): ProxyPolicy {
  const policy: ProxyPolicy = {
    program: 'tinyproxy',
    port: 0,
    listens: [],
    rules: [],
    credentials: [],
    connectPorts: [],
  }
  for (const [index, line] of text.split('\n').entries()) {
    // Only a # in the first column begins a comment.
    if (line.startsWith('#') || line.trim() === '') continue
    const [, name = '', value = ''] = /^\s*(\S+)(?:\s+(.*?))?[ \t]*$/s.exec(line) ?? []
    const pattern = directives[name.toLowerCase()]
    if (!pattern || !new RegExp(`^${pattern}$`, 'i').test(value)) throw syntaxError(index + 1)
    apply(policy, name.toLowerCase(), value, index + 1, hasFile)
  }
  if (policy.port === 0) throw new DaemonRefusal('tinyproxy: You MUST set a Port in the config file.')
  return policy
}

function apply(
  policy: ProxyPolicy,
  name: string,
  value: string,
  line: number,
  hasFile: (path: string) => boolean,
): void {
  switch (name) {
    case 'port':
      if (Number(value) > 65535) throw syntaxError(line, `Bad port number (${value}) supplied for Port.`)
      policy.port = Number(value)
      return
    case 'listen':
      policy.listens.push(value)
      return
    case 'allow':
    case 'deny':
      policy.rules.push(toRule(name, value))
      return
    case 'basicauth': {
      const [username = '', password = ''] = value.split(/\s+/)
      policy.credentials.push({ username, password })
      return
    }
    case 'connectport':
      policy.connectPorts.push(Number(value))
      return
    case 'user':
    case 'group':
      if (!accounts.includes(value)) throw new DaemonRefusal(`tinyproxy: Unable to find ${name} "${value}".`)
      return
    case 'filter':
      if (!hasFile(value.slice(1, -1))) throw new DaemonRefusal('filter file: No such file or directory')
      return
    case 'upstream':
      throw new DaemonRefusal('the simulator does not chain proxies: Upstream')
  }
}

/** A range that cannot be is only warned about, but there is a list then, and who is on none of it stays outside. */
function toRule(name: string, value: string): AccessRule {
  const isUsable = !value.includes('/') || ipaddr.isValidCIDR(value)
  return { allow: name === 'allow', from: isUsable ? value : '' }
}

function syntaxError(line: number, before?: string): DaemonRefusal {
  const words = `ERROR: Syntax error on line ${line}\nUnable to parse config file. Not starting.`
  return new DaemonRefusal(before ? `${before}\n${words}` : words)
}
