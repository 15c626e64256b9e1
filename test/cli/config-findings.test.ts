import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { configFindings } from '../../cli/config-findings.ts'
import { loadConfig } from '../../lib/config.ts'
import { aDocument } from '../lib/a-config.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-config-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** A configuration with the files that it names beside it. */
function findings(changes: Record<string, unknown>, spoil: (own: string) => void = () => {}) {
  const own = mkdtempSync(join(folder, 'own-'))
  for (const file of ['token', 'parameters.yml']) writeFileSync(join(own, file), 'x: y', { mode: 0o600 })
  writeFileSync(join(own, 'test.yml'), stringify(aDocument(changes)))
  spoil(own)
  return configFindings(loadConfig(join(own, 'test.yml'))).map(
    ({ level, path, text }) => `${level} ${path}: ${text}`,
  )
}
const withCluster = (changes: object) => ({ clusters: { lab: { ...aDocument().clusters.lab, ...changes } } })

describe('a configuration that its schema accepts', () => {
  it('may be good', () => {
    expect(findings({})).toEqual([])
  })

  it('may name a token that is not there', () => {
    const [finding] = findings({}, (own) => rmSync(join(own, 'token')))
    expect(finding).toMatch(/^failure clusters\.lab\.token: .*token cannot be read/)
  })

  it('may name passwords that are not there, which not every proxy asks for', () => {
    const [finding] = findings({}, (own) => rmSync(join(own, 'parameters.yml')))
    expect(finding).toMatch(/^warning parameters\.file: /)
  })

  it('may keep its token where others can read it', () => {
    const [finding] = findings({}, (own) => chmodSync(join(own, 'token'), 0o640))
    expect(finding).toMatch(/^warning clusters\.lab\.token: .*chmod 600/)
  })

  it('may trust what is no authority', () => {
    const text = findings(withCluster({ caFile: 'ca.pem' }), (own) =>
      writeFileSync(join(own, 'ca.pem'), 'none'),
    )
    expect(text).toEqual([
      expect.stringMatching(/^failure clusters\.lab\.caFile: .*not a readable PEM certificate/),
    ])
    expect(findings(withCluster({ caFile: 'none.pem' }))[0]).toContain('ENOENT')
  })

  it('may have a template among the numbers that it gives out', () => {
    const images = { 'debian-12': { pve1: 5005, pve2: 9001 } }
    expect(findings(withCluster({ images }))).toEqual([
      'warning clusters.lab.images.debian-12.pve1: template 5005 lies in the range that VMIDs are given out from',
    ])
  })

  it('may have zones in each other’s way', () => {
    const zones = {
      'lab-1': { cluster: 'lab', nodes: ['pve1'], vmids: { from: 5000, to: 5100 } },
      'lab-2': { cluster: 'lab', nodes: ['pve2'], vmids: { from: 5100, to: 6000 } },
    }
    expect(findings({ zones })).toEqual([
      'warning zones.lab-1.vmids: shares numbers with zone lab-2',
      'warning zones.lab-2.vmids: reaches beyond clusters.lab.vmids',
    ])
  })
})
