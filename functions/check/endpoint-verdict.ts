import type { Finding } from './event.ts'
import { type EndpointFacts, isQuorate, isSilent } from './facts.ts'
import { about, orFine, SOON_MS } from './finding.ts'

const SUPPORTED = [8, 9]

/** Facts → findings about one endpoint: does it answer, is it who it should be, may it write? */
export function judgeEndpoint(facts: EndpointFacts, now: number): Finding[] {
  const { url, node, version } = facts
  const say = about({ target: 'endpoint', where: url, ...(node === undefined ? {} : { node }) })
  if (!version.known) return [unanswered(facts)]
  const { major, version: text } = version.value
  const findings: Finding[] = []
  if (!SUPPORTED.includes(major)) {
    const known = `supported are ${SUPPORTED.join(' and ')}`
    const newer = major > Math.max(...SUPPORTED)
    findings.push(
      newer
        ? say.warn('VersionUnsupported', `Proxmox VE ${text} is newer than this program: ${known}`)
        : say.fail(
            'VersionUnsupported',
            `Proxmox VE ${text} is too old: ${known}`,
            'pve8to9 (on the node) tells what is in the way of an upgrade',
          ),
    )
  }
  findings.push(...judgeQuorum(facts), ...judgeCertificate(facts, now))
  return orFine(findings, say.fine(`answers, Proxmox VE ${text}`))
}

function unanswered({ url, node, version }: EndpointFacts): Finding {
  const say = about({ target: 'endpoint', where: url, ...(node === undefined ? {} : { node }) })
  const host = new URL(url).host
  if (version.known) throw new Error(`${url} has answered`)
  if (version.code === 'Untrusted') {
    const line = `openssl s_client -connect ${host} </dev/null 2>/dev/null | openssl x509 -noout -fingerprint -sha256 # and on the node: openssl x509 -in /etc/pve/local/pve-ssl.pem -noout -fingerprint -sha256`
    return say.fail(
      'Untrusted',
      `its certificate is not the one that the configuration trusts; compare what is served with what the node has, then correct fingerprint or caFile: ${version.reason}`,
      line,
    )
  }
  if (version.code === 'Unauthorized')
    return say.warn('TokenRefused', 'answers, and refuses every stored token')
  if (isSilent(version)) {
    return say.fail(
      'Unreachable',
      version.reason,
      `curl --insecure --max-time 5 ${url}/ # from here; on the node: systemctl status pveproxy`,
    )
  }
  return say.fail('Unexpected', version.reason)
}

function judgeQuorum({ url, node, status, nodes }: EndpointFacts): Finding[] {
  const say = about({ target: 'endpoint', where: url, ...(node === undefined ? {} : { node }) })
  if (!status.known && (status.code !== 'Forbidden' || !nodes.known)) return [say.untold('quorum', status)]
  if (isQuorate({ status, nodes })) return []
  const text =
    'its node is not in the part of the cluster that may write: nothing can be made or deleted through it'
  return [say.fail('NoQuorum', text, 'pvecm status # on the node')]
}

function judgeCertificate({ url, node, certificates }: EndpointFacts, now: number): Finding[] {
  const say = about({ target: 'endpoint', where: url, ...(node === undefined ? {} : { node }) })
  if (!certificates.known) return [say.untold('certificate', certificates)]
  // Source: pve-manager pveproxy.pm, which takes the one of its own name before the cluster's.
  const byFile = (name: string) => certificates.value.find(({ file }) => file === name)
  const served = byFile('pveproxy-ssl.pem') ?? byFile('pve-ssl.pem')
  if (served?.expiresAtMs === undefined) return []
  const left = served.expiresAtMs - now
  if (left > SOON_MS) return []
  const on = new Date(served.expiresAtMs).toISOString()
  const line =
    served.file === 'pve-ssl.pem'
      ? 'pvecm updatecerts --force # on the node'
      : 'pvenode acme cert renew # on the node, or upload a new one'
  const pinned = 'a new certificate has a new fingerprint: change it in the configuration where it is pinned'
  return left <= 0
    ? [say.fail('CertificateExpires', `its certificate ended ${on}; ${pinned}`, line)]
    : [say.warn('CertificateExpires', `its certificate ends ${on}; ${pinned}`, line)]
}
