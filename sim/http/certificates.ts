import { X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generate } from 'selfsigned'

export type NodeCertificate = { key: string; cert: string /** SHA-256, as AA:BB:… */; fingerprint: string }
export type Certificates = { ca: string; nodes: Record<string, NodeCertificate> }

const validMs = 2 * 365 * 24 * 3600 * 1000

/**
 * The cluster's own authority and a certificate for each node, like those PVE makes when it is installed. With a directory
 * they are made once and read again later, so that pinned fingerprints stay good. Names as in captures 19, "certificate".
 */
export async function loadCertificates(
  nodes: string[],
  options: { dir?: string } = {},
): Promise<Certificates> {
  const { dir } = options
  if (dir) mkdirSync(dir, { recursive: true, mode: 0o700 })
  const ca = await kept(dir, 'pve-root-ca', makeAuthority)
  const made: Certificates['nodes'] = {}
  for (const node of nodes) {
    const pair = await kept(dir, node, () => makeLeaf(node, ca))
    made[node] = { ...pair, fingerprint: new X509Certificate(pair.cert).fingerprint256 }
  }
  return { ca: ca.cert, nodes: made }
}

type Pair = { key: string; cert: string }

/** Reads a pair that was kept earlier, or makes and keeps it. One file holds both, so that they always belong together. */
async function kept(dir: string | undefined, name: string, make: () => Promise<Pair>): Promise<Pair> {
  const file = dir && join(dir, `${name}.pem`)
  if (file && existsSync(file)) return splitPair(readFileSync(file, 'utf8'))
  const pair = await make()
  if (file) {
    // Whole or not at all, whenever the process may end.
    writeFileSync(`${file}.new`, `${pair.key}\n${pair.cert}`, { mode: 0o600 })
    renameSync(`${file}.new`, file)
  }
  return pair
}

function splitPair(pem: string): Pair {
  const start = pem.indexOf('-----BEGIN CERTIFICATE-----')
  return { key: pem.slice(0, start).trim(), cert: pem.slice(start) }
}

async function makeAuthority(): Promise<Pair> {
  const made = await generate(
    [
      { name: 'commonName', value: 'Proxmox Virtual Environment' },
      { name: 'organizationName', value: 'PVE Cluster Manager CA' },
    ],
    {
      ...common(),
      extensions: [
        { name: 'basicConstraints', cA: true, critical: true },
        { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
      ],
    },
  )
  return { key: made.private, cert: made.cert }
}

async function makeLeaf(node: string, ca: Pair): Promise<Pair> {
  const made = await generate(
    [
      { name: 'OU', value: 'PVE Cluster Node' },
      { name: 'organizationName', value: 'Proxmox Virtual Environment' },
      { name: 'commonName', value: node },
    ],
    {
      ...common(),
      ca,
      extensions: [
        { name: 'basicConstraints', cA: false, critical: true },
        { name: 'keyUsage', digitalSignature: true, keyEncipherment: true, critical: true },
        { name: 'extKeyUsage', serverAuth: true },
        {
          name: 'subjectAltName',
          altNames: [
            { type: 7, ip: '127.0.0.1' },
            { type: 7, ip: '::1' },
            { type: 2, value: 'localhost' },
            { type: 2, value: node },
          ],
        },
      ],
    },
  )
  return { key: made.private, cert: made.cert }
}

function common() {
  const notBeforeDate = new Date()
  return {
    keyType: 'ec' as const,
    algorithm: 'sha256',
    notBeforeDate,
    notAfterDate: new Date(notBeforeDate.getTime() + validMs),
  }
}
