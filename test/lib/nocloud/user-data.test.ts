import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { documents, makeSeed, userDataMaxBytes } from '../../../lib/nocloud/index.ts'
import { aSeed, thrownBy } from './a-seed.ts'

const userDataOf = (userData?: string) =>
  documents(aSeed(userData === undefined ? {} : { userData }))['user-data']

describe('user-data', () => {
  it('is an empty cloud-config when the publisher has none', () => {
    expect(userDataOf()).toBe('#cloud-config\n{}\n')
  })

  it.each([
    '#cloud-config\nruncmd: [[touch, /x]]\n',
    '#cloud-config\r\npackages:\r\n  - htop\r\n',
    '\n  #cloud-config\na: 1\na: 2\n',
    '#cloud-config\n# nothing yet\n',
    '#!/bin/sh\ntrue\n',
    '#cloud-config-archive\n- content: x\n',
    '#include\nhttps://example.org/seed\n',
    '#cloud-boothook\n#!/bin/sh\n',
    '## template: jinja\n#cloud-config\nhostname: {{ v1.instance_id }}\n',
    'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x--\n',
    'Content-Type: multipart/mixed; boundary=x\nMIME-Version: 1.0\n\n--x--\n',
  ])('stands to the letter: %j', (text) => {
    expect(userDataOf(text)).toBe(text)
  })

  it.each([
    ['without a first line that cloud-init knows', 'packages: [htop]\n', /starts with #cloud-config, /],
    [
      'with broken YAML',
      '#cloud-config\na: [1,\nb: "\n',
      /valid YAML after #cloud-config \([A-Z_]+ in line \d\)/,
    ],
    ['with a tab between two tokens', '#cloud-config\nruncmd:\t[[ls]]\n', /a tab outside quotes in line 2/],
    ['with a tab before a comment', '#cloud-config\na: 1\nb: 2\t# x\n', /a tab outside quotes in line 3/],
    ['with two documents', '#cloud-config\na: 1\n---\nb: 1\n', /MULTIPLE_DOCS/],
    ['with an alias of nothing', '#cloud-config\na: *x\n', /UNKNOWN_ALIAS/],
    ['with a tag of its own', '#cloud-config\na: !mine b\n', /TAG_RESOLVE_FAILED/],
    ['with a list for a key', '#cloud-config\n[a]: b\n', /a key that is no text/],
    ['with a line end that only cloud-init sees', '#cloud-config\na: b\u2028c\n', /character .* in line 2/],
    ['with a list for a mapping', '#cloud-config\n- a\n', /mapping/],
    ['with a word for a mapping', '#cloud-config\nhello\n', /mapping/],
    ['with a NUL', '#!/bin/sh\n\0', /NUL/],
    ['with half a character', '#!/bin/sh\n\ud800', /Unicode/],
  ])('is refused %s', (_what, text, wanted) => {
    expect(thrownBy(() => userDataOf(text))).toMatchObject({
      code: 'InvalidUserData',
      field: 'userData',
      wanted: expect.stringMatching(wanted),
      got: undefined,
    })
  })

  it('is taken up to 16 KiB and refused beyond', () => {
    const ofBytes = (bytes: number) => '#!/bin/sh\n' + 'ü'.repeat((bytes - 10) / 2)
    expect(makeSeed(aSeed({ userData: ofBytes(userDataMaxBytes) })).length).toBeGreaterThan(0)
    expect(thrownBy(() => userDataOf(ofBytes(userDataMaxBytes + 2)))).toMatchObject({
      code: 'UserDataTooLarge',
      got: '"16386 bytes"',
    })
  })

  it('leaves no trace in an error', () => {
    const texts = [
      'canary-1',
      '#cloud-config\ncanary-1:\tx',
      '#cloud-config\na: *canary-1',
      '#cloud-config\ncanary-1: [',
      '#cloud-config\n- canary-1',
      `#!canary-1\0`,
    ]
    for (const text of [...texts, '#!' + 'canary-1'.repeat(9999)]) {
      const error = thrownBy(() => userDataOf(text))
      expect(error).toBeInstanceOf(Error)
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('canary-1')
    }
  })
})
