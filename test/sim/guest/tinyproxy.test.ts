import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DaemonRefusal } from '../../../sim/guest/daemon-refusal.ts'
import { judgeProxyRequest } from '../../../sim/guest/policy.ts'
import { openProxy, type ProxyServer } from '../../../sim/guest/proxy-server.ts'
import { parseTinyproxyConf } from '../../../sim/guest/tinyproxy.ts'

const parse = (text: string) => parseTinyproxyConf(text, () => false)

/** Lines after a Port and a Listen: does the program start with them? Found by trying the real 1.11.1; see below. */
const lines: [line: string, starts: boolean][] = [
  ['', true],
  ['# comment', true],
  ['  # an indented comment', false],
  ['   ', true],
  ['\r', true],
  ['  Timeout 600', true],
  ['TIMEOUT    600   ', true],
  ['Timeout 600 # comment', false],
  ['Timeout abc', false],
  ['Timeout', false],
  ['Bogus 1', false],
  ['Allow', false],
  ['Allow 10.0.0.0/8\nAllow 127.0.0.1\nAllow ::1\nAllow 2001:db8::/32', true],
  ['Allow 10.0.0.0/33', true],
  ['Allow 10.0.0.256', true],
  ['Allow 10.0.0.0/255.0.0.0', false],
  ['Allow .example.com', true],
  ['Allow exa mple', false],
  ['Allow 127.0.0.1\r', false],
  ['Deny 10.0.0.1', true],
  ['BasicAuth u p', true],
  ['BasicAuth u', false],
  ['BasicAuth u p:x', false],
  ['BasicAuth "u" p', false],
  ['ConnectPort 443', true],
  ['MaxClients 0', true],
  ['LogLevel Foo', false],
  ['LogLevel Warning', true],
  ['User nosuchuser', false],
  ['DisableViaHeader maybe', false],
  ['DisableViaHeader Yes', true],
  ['ViaProxyName tinyproxy', false],
  ['ViaProxyName "tinyproxy"', true],
  ['MinSpareServers 5\nMaxSpareServers 20\nStartServers 10\nMaxRequestsPerChild 0', true],
  ['Filter "/nonexistent"', false],
  [
    'StatHost "tinyproxy.stats"\nDefaultErrorFile "/x"\nErrorFile 404 "/x"\nAddHeader "X" "y"\nAnonymous "Host"',
    true,
  ],
  ['Port 70000', false],
]

/** Configurations, and what a client at 127.0.0.1 gets: plain, by CONNECT, with right and with wrong credentials. */
const access: [conf: string, plain: number, connect: number, known: number, wrong: number][] = [
  ['', 200, 200, 200, 200],
  ['Allow 10.0.0.0/8', 403, 403, 403, 403],
  ['Deny 10.0.0.0/8', 403, 403, 403, 403],
  ['Deny 127.0.0.1\nAllow 127.0.0.0/8', 403, 403, 403, 403],
  ['Allow 127.0.0.0/8\nDeny 127.0.0.1', 200, 200, 200, 200],
  ['Allow 10.0.0.0/33', 403, 403, 403, 403],
  ['Allow localhost', 200, 200, 200, 200],
  ['Allow ::ffff:127.0.0.1', 200, 200, 200, 200],
  ['BasicAuth a b\nBasicAuth u p', 407, 407, 200, 401],
  ['Allow 10.0.0.1\nBasicAuth u p', 403, 403, 403, 403],
  ['ConnectPort 443', 200, 403, 200, 200],
  ['ConnectPort 0', 200, 403, 200, 200],
]

describe('sim: guest: tinyproxy', () => {
  it.each(lines)('given %j, it starts: %s', (line, starts) => {
    const start = () => parse(`Port 8888\nListen 127.0.0.1\n${line}\n`)
    if (starts) expect(start().port).toBe(8888)
    else expect(start).toThrow(DaemonRefusal)
  })

  it('names the line it does not understand', () => {
    expect(() => parse('Port 8888\n\nBogus 1\n')).toThrow(
      'ERROR: Syntax error on line 3\nUnable to parse config file. Not starting.',
    )
    expect(() => parse('Timeout 600\n')).toThrow('tinyproxy: You MUST set a Port in the config file.')
  })

  it('takes the last port', () => {
    expect(parse('Port 1\nPort 2\n').port).toBe(2)
  })

  it.each(access)('with %j it answers %d, %d, %d, %d', (conf, plain, connectStatus, known, wrong) => {
    const policy = parse(`Port 8888\n${conf}\n`)
    const ask = (request: object) => judgeProxyRequest(policy, { client: '127.0.0.1', ...request }).status
    expect([
      ask({}),
      ask({ connectPort: 18999 }),
      ask({ credentials: { username: 'u', password: 'p' } }),
      ask({ credentials: { username: 'u', password: 'x' } }),
    ]).toEqual([plain, connectStatus, known, wrong])
  })

  describe('over sockets', () => {
    const site = createServer((_, response) => response.end('page'))
    let sitePort: number
    let folder: string
    beforeAll(async () => {
      sitePort = await listen(site)
      folder = await mkdtemp(join(tmpdir(), 'sim-tinyproxy-'))
    })
    afterAll(async () => {
      site.close()
      await rm(folder, { recursive: true })
    })

    /** The statuses of the four requests of the table. */
    async function ask(port: number): Promise<number[]> {
      const plain = `GET http://127.0.0.1:${sitePort}/ HTTP/1.1\r\nHost: 127.0.0.1:${sitePort}\r\nConnection: close\r\n`
      const basic = (pair: string) => `Proxy-Authorization: Basic ${Buffer.from(pair).toString('base64')}\r\n`
      const requests = [
        `${plain}\r\n`,
        `CONNECT 127.0.0.1:${sitePort} HTTP/1.1\r\nHost: x\r\n\r\n`,
        `${plain}${basic('u:p')}\r\n`,
        `${plain}${basic('u:x')}\r\n`,
      ]
      return Promise.all(requests.map((request) => statusOf(port, request)))
    }

    it.each(access)('serves with %j as the table says', async (conf, ...wanted) => {
      const policy = { ...parse(`Port 8888\n${conf}\n`), port: 0 }
      const port = await freePort()
      const proxy: ProxyServer = await openProxy({ ...policy, port }, HERE)
      expect(await ask(port)).toEqual(wanted)
      await proxy.close()
    })

    describe.skipIf(!existsSync('/usr/bin/tinyproxy'))('the real program', () => {
      /** Runs tinyproxy until it listens or gives up. */
      async function run(
        conf: string,
      ): Promise<{ port: number; starts: boolean; stop: () => Promise<void> }> {
        const port = await freePort()
        const file = join(folder, `${port}.conf`)
        await writeFile(file, `Port ${port}\nListen ${HERE}\n${conf}\n`)
        const child: ChildProcess = spawn('/usr/bin/tinyproxy', ['-d', '-c', file], { stdio: 'ignore' })
        const ended = once(child, 'exit')
        const starts = await Promise.race([ended.then(() => false), reachable(port, child).then(() => true)])
        return {
          port,
          starts,
          async stop() {
            // It may miss a polite signal that comes while it starts.
            child.kill('SIGKILL')
            await ended
          },
        }
      }

      it.each(lines)('given %j, starts: %s', async (line, starts) => {
        const real = await run(line)
        expect(real.starts).toBe(starts)
        await real.stop()
      })

      it.each(access)('serves with %j as the table says', async (conf, ...wanted) => {
        const real = await run(conf)
        expect(await ask(real.port)).toEqual(wanted)
        await real.stop()
      })
    })
  })
})

/**
 * Where the proxies of these tests listen, as nobody else does. Nor can a connection from 127.0.0.1 to a port where nobody is be
 * its own other end here, which a kernel that happens to choose the same port for both makes of it.
 */
const HERE = '127.93.7.1'

async function listen(server: ReturnType<typeof createTcpServer>): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function freePort(): Promise<number> {
  const server = createTcpServer()
  const port = await listen(server)
  server.close()
  await once(server, 'close')
  return port
}

async function reachable(port: number, child: ChildProcess): Promise<void> {
  while (child.exitCode === null) {
    const socket = connect(port, HERE)
    const isOpen = await new Promise((resolve) =>
      socket.on('connect', () => resolve(true)).on('error', () => resolve(false)),
    )
    socket.destroy()
    if (isOpen) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await new Promise(() => {})
}

async function statusOf(port: number, request: string): Promise<number> {
  const socket = connect(port, HERE, () => socket.write(request))
  let text = ''
  for await (const chunk of socket) {
    text += chunk
    if (text.includes('\r\n')) break
  }
  socket.destroy()
  return Number(/^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1])
}
