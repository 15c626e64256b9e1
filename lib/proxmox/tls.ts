import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { buildConnector } from './undici.ts'

const connectTimeoutMs = 5_000

/**
 * Connects to an endpoint whose certificate is either the one with this SHA-256 fingerprint or signed by a CA
 * that we trust. There is no third way. An error here means that not a byte of a request was sent, so it is marked.
 */
export function trustedConnector(trust: { fingerprint?: string; ca?: string }): buildConnector.connector {
  const connect = trust.fingerprint === undefined ? byAuthority(trust.ca) : byFingerprint(trust.fingerprint)
  return (options, callback) =>
    connect(options, (error, socket) =>
      socket
        ? callback(null, socket)
        : callback(Object.assign(error ?? new Error('no socket'), { unsent: true }), null),
    )
}

function byAuthority(ca: string | undefined): buildConnector.connector {
  return buildConnector({ allowH2: false, timeout: connectTimeoutMs, ...(ca === undefined ? {} : { ca }) })
}

// Node ignores `checkServerIdentity` once `rejectUnauthorized` is off, so the certificate is compared by hand before
// the socket is handed over. On a resumed session it cannot be read: hence no session is kept.
function byFingerprint(fingerprint: string): buildConnector.connector {
  const wanted = plain(fingerprint)
  const connect = buildConnector({
    allowH2: false,
    timeout: connectTimeoutMs,
    rejectUnauthorized: false,
    maxCachedSessions: 0,
  })
  return (options, callback) =>
    connect(options, (error, socket) => {
      if (!socket) return callback(error ?? new Error('no socket'), null)
      if (presented(socket) === wanted) return callback(null, socket)
      socket.destroy()
      const impostor = new Error('the certificate does not have the pinned fingerprint')
      callback(Object.assign(impostor, { code: 'ERR_CERT_PIN' }), null)
    })
}

function presented(socket: Socket | TLSSocket): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined
  const certificate = socket.getPeerCertificate(false)
  return certificate.fingerprint256 ? plain(certificate.fingerprint256) : undefined
}

function plain(fingerprint: string): string {
  return fingerprint.replaceAll(':', '').toLowerCase()
}
