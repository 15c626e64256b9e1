import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createSecureContext, TLSSocket } from 'node:tls'
import { type Engine, SimConnectionError } from '../types.ts'
import type { NodeCertificate } from './certificates.ts'
import { serveConnection } from './connection.ts'

export type NodePort = { port: number; close(): Promise<void> }

export type PortOptions = {
  engine: Engine
  node: string
  host: string
  /** 0 takes a free one. */
  port: number
  idleMs: number
  certificate: NodeCertificate
}

/** The first byte of a TLS handshake; anything else is plain HTTP. */
const handshakeByte = 0x16

/**
 * The HTTPS port of one node. It shares the node's fate: closed while the node is down, so that clients are really refused;
 * deaf while it hangs or cannot be reached.
 */
export async function openPort(options: PortOptions): Promise<NodePort> {
  const { engine, node, host } = options
  const secureContext = createSecureContext({ key: options.certificate.key, cert: options.certificate.cert })
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', ignoreLostClient)
    const isDeaf = engine.reachability(node) !== 'up'
    if (!isDeaf) welcome(socket)
  })

  function welcome(socket: Socket) {
    socket.setTimeout(options.idleMs, () => socket.destroy())
    socket.once('data', (first: Buffer) => {
      socket.setTimeout(0)
      socket.pause()
      socket.unshift(first)
      const isTls = first[0] === handshakeByte
      if (!isTls) return serve(socket, socket)
      const stream = new TLSSocket(socket, { isServer: true, secureContext })
      stream.on('error', ignoreLostClient)
      return serve(stream, socket)
    })
  }

  function serve(stream: Duplex, socket: Socket) {
    const isTls = stream !== socket
    serveConnection(stream, { engine, node, idleMs: options.idleMs, isTls }).catch((cause) => {
      // The nearest a listener can come to a connection that fails: it is reset in the middle.
      socket.resetAndDestroy()
      if (!(cause instanceof SimConnectionError)) throw cause
    })
  }

  async function listen(port: number): Promise<number> {
    server.listen(port, host)
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error(`no TCP address for node ${node}`)
    return address.port
  }

  async function hide(): Promise<void> {
    for (const socket of sockets) socket.destroy()
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }

  const port = await listen(options.port)
  let settled = Promise.resolve()
  const follow = () => {
    settled = settled.then(async () => {
      const isDown = engine.reachability(node) === 'down'
      if (isDown) await hide()
      else if (!server.listening) await listen(port)
    })
    return settled
  }
  const forget = engine.onReachability((changed) => {
    if (changed === node) follow()
  })
  await follow()

  return {
    port,
    async close() {
      forget()
      await settled
      await hide()
    },
  }
}

/** A client that goes away in the middle, or dislikes our certificate, is no fault of ours. */
function ignoreLostClient() {}
