import { describe, expect, it } from 'vitest'
import { DaemonRefusal } from '../../../sim/guest/daemon-refusal.ts'
import { judgeProxyRequest } from '../../../sim/guest/policy.ts'
import { parseSquidConf } from '../../../sim/guest/squid.ts'

const common = `acl lan src 10.0.0.0/8 fd00::/8
acl SSL_ports port 443
acl Safe_ports port 80
acl CONNECT method CONNECT
http_access deny !Safe_ports
http_access deny CONNECT !SSL_ports
http_access allow localhost manager
http_access deny manager
http_access allow lan
http_access allow localhost
http_access deny all
http_port 127.0.0.5:3128 # where it listens
coredump_dir /var/spool/squid
`

describe('sim: guest: squid', () => {
  it('reads ports and access from the usual configuration', () => {
    const policy = parseSquidConf(common)
    const ask = (client: string, connectPort?: number) =>
      judgeProxyRequest(policy, { client, ...(connectPort !== undefined && { connectPort }) }).status
    expect(policy).toMatchObject({ port: 3128, listens: ['127.0.0.5'] })
    expect([
      ask('10.1.2.3'),
      ask('::ffff:10.1.2.3'),
      ask('fd00::1'),
      ask('127.0.0.1'),
      ask('192.0.2.1'),
    ]).toEqual([200, 200, 200, 200, 403])
    expect([ask('10.1.2.3', 443), ask('10.1.2.3', 22)]).toEqual([200, 403])
  })

  it('refuses everybody when nothing is allowed', () => {
    expect(judgeProxyRequest(parseSquidConf('http_port 3128\n'), { client: '127.0.0.1' }).status).toBe(403)
  })

  it.each([
    '',
    'http_port 99999',
    'http_port 3128\nacl x src nonsense',
    'http_port 3128\nhttp_access allow nobody',
    'http_port 3128\nauth_param basic program /x',
    'http_port 3128\nhttp_access maybe all',
  ])('does not start with %j', (conf) => {
    expect(() => parseSquidConf(conf)).toThrow(DaemonRefusal)
  })
})
