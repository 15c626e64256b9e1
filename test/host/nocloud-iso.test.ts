import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { documents, makeSeed, userDataMaxBytes } from '../../lib/nocloud/index.ts'
import { aSeed } from '../lib/nocloud/a-seed.ts'
import { describeWith, run } from './tools.ts'

const names = ['meta-data', 'network-config', 'user-data', 'vendor-data'] as const
const seed = aSeed({ userData: '#!/bin/sh\n' + '# ü€\n'.repeat(2000) })
const texts = documents(seed)

let folder: string
let image: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-iso-'))
  image = join(folder, 'seed.iso')
  writeFileSync(image, makeSeed(seed))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** The last column of a listing by isoinfo, without the folder itself and its parent. */
const listed = (kind: '-R' | '-J') =>
  run('isoinfo', kind, '-l', '-i', image)
    .split('\n')
    .filter((line) => /^[d-][r-]/.test(line))
    .map((line) => line.trim().split(/\s+/).at(-1))
    .filter((name) => name !== '.' && name !== '..')

describeWith(['isoinfo'], 'isoinfo', () => {
  it('sees an ISO 9660 disc labelled cidata with Joliet and Rock Ridge', () => {
    const about = run('isoinfo', '-d', '-i', image)
    expect(about).toContain('Volume id: cidata\n')
    expect(about).toContain('Joliet with UCS level 3 found')
    expect(about).toContain('Rock Ridge signatures version 1 found')
  })

  it.each(['-R', '-J'] as const)('lists the four names exactly, read by %s', (kind) => {
    expect(listed(kind)).toEqual(names)
  })

  it.each(names)('reads %s by either tree', (name) => {
    for (const kind of ['-R', '-J']) {
      expect(run('isoinfo', kind, '-i', image, '-x', `/${name}`)).toBe(texts[name])
    }
  })
})

describeWith(['xorriso'], 'xorriso', () => {
  it('extracts the documents whole and has nothing to complain of', () => {
    const target = join(folder, 'extracted')
    run('xorriso', '-abort_on', 'WARNING', '-osirrox', 'on', '-indev', image, '-extract', '/', target)
    for (const name of names) expect(readFileSync(join(target, name), 'utf8')).toBe(texts[name])
  })

  it('extracts the largest user-data', () => {
    const userData = '#!/bin/sh\n'.padEnd(userDataMaxBytes, '#')
    const large = join(folder, 'large.iso')
    writeFileSync(large, makeSeed(aSeed({ userData })))
    const target = join(folder, 'user-data')
    run('xorriso', '-osirrox', 'on', '-indev', large, '-extract', '/user-data', target)
    expect(readFileSync(target, 'utf8')).toBe(userData)
  })
})

describeWith(['blkid'], 'blkid', () => {
  it('tells the label and type by which cloud-init finds the disc', () => {
    const fields = run('blkid', '-p', '-o', 'export', image)
    expect(fields).toContain('LABEL=cidata\n')
    expect(fields).toContain('TYPE=iso9660\n')
  })
})
