import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { type Instance, readInstance } from '../../../sim/guest/instance.ts'

function read(documents: {
  user?: string | Uint8Array
  vendor?: string
  meta?: string
  network?: string
}): Instance & { log: string[] } {
  const log: string[] = []
  const instance = readInstance(
    {
      metaData: Buffer.from(documents.meta ?? 'instance-id: i-1\n'),
      userData: Buffer.from(documents.user ?? ''),
      ...(documents.vendor !== undefined && { vendorData: Buffer.from(documents.vendor) }),
      ...(documents.network !== undefined && { networkConfig: Buffer.from(documents.network) }),
    },
    (line) => log.push(line),
  )
  return { ...instance, log }
}

function mime(...parts: { type: string; text: string; headers?: string }[]): string {
  const pieces = parts.map(
    ({ type, text, headers = '' }) => `--b\nContent-Type: ${type}\n${headers}\n${text}\n`,
  )
  return `MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n${pieces.join('')}--b--\n`
}

const configs = {
  layered: {
    user: '#cloud-config\nruncmd: [u]\npackages: []\nnested: {x: 1, list: [1]}\nhostname: u\n',
    vendor: '#cloud-config\nruncmd: [v]\nwrite_files: [{path: /v}]\nnested: {x: 9, y: 2, list: [2]}\n',
  },
  'a merge_how in the user-data': {
    user: '#cloud-config\nmerge_how: list(append)+dict(recurse_array)+str()\nruncmd: [u]\n',
    vendor: '#cloud-config\nruncmd: [v]\n',
  },
  'a merge_how in the vendor-data': {
    user: '#cloud-config\nruncmd: [u]\n',
    vendor:
      '#cloud-config\nmerge_how: [{name: list, settings: [append]}, {name: dict, settings: [recurse_list]}]\nruncmd: [v]\n',
  },
  'several parts': {
    user: mime(
      { type: 'text/cloud-config', text: '#cloud-config\nruncmd: [a]\nd: {x: 1}' },
      { type: 'text/cloud-config', text: '#cloud-config\nruncmd: [b]\nd: {y: 1}' },
    ),
    vendor: '',
  },
  'several parts that append': {
    user: mime(
      { type: 'text/cloud-config', text: '#cloud-config\nruncmd: [a]\nd: {x: 1, s: p}' },
      {
        type: 'text/cloud-config',
        text: '#cloud-config\nmerge_how: list(append)+dict(no_replace,recurse_list,recurse_str)+str(append)\nruncmd: [b]\nd: {x: 2, y: 1, s: q}',
      },
    ),
    vendor: '',
  },
  'a merge type in the headers': {
    user: mime(
      { type: 'text/cloud-config', text: '#cloud-config\nruncmd: [a]' },
      {
        type: 'text/cloud-config',
        headers: 'Merge-Type: list(prepend)+dict(recurse_array)+str()\n',
        text: '#cloud-config\nruncmd: [b]',
      },
    ),
    vendor: '',
  },
  'lists merged by index': {
    user: mime(
      { type: 'text/cloud-config', text: '#cloud-config\nl: [{a: 1}, 2, 3]' },
      {
        type: 'text/cloud-config',
        text: '#cloud-config\nmerge_how: list(replace,recurse_dict)+dict(recurse_array)+str()\nl: [{b: 1}, 9]',
      },
    ),
    vendor: '',
  },
  'a key taken away': {
    user: mime(
      { type: 'text/cloud-config', text: '#cloud-config\na: 1\nb: {c: 1}' },
      {
        type: 'text/cloud-config',
        text: '#cloud-config\nmerge_how: list()+dict(allow_delete)+str()\na: null',
      },
    ),
    vendor: '',
  },
  'a broken part': {
    user: mime(
      { type: 'text/cloud-config', text: '#cloud-config\na: [1' },
      { type: 'text/cloud-config', text: '#cloud-config\nb: 1' },
    ),
    vendor: '#cloud-config\nc: 1\n',
  },
  'no header': { user: 'runcmd: [u]\n', vendor: '#cloud-config\nruncmd: [v]\n' },
  'plain text that is a cloud-config': {
    user: mime({ type: 'text/plain', text: '#cloud-config\na: 1' }),
    vendor: '',
  },
  'base64 in MIME': {
    user: mime({
      type: 'text/cloud-config',
      headers: 'Content-Transfer-Encoding: base64\n',
      text: Buffer.from('#cloud-config\na: ü\n').toString('base64'),
    }),
    vendor: '',
  },
  'YAML 1.1': { user: '#cloud-config\na: yes\nb: 0644\nc: "0644"\nd: 1\nd: 2\ne: on\n', vendor: '' },
  'an archive': {
    user: '#cloud-config-archive\n- {type: text/cloud-config, content: "a: 1"}\n- "#cloud-config\\nb: 2"\n',
    vendor: '',
  },
}

const python = '/usr/bin/python3'
const hasCloudInit = existsSync(python) && existsSync('/usr/bin/cloud-init')

describe('sim: guest: instance', () => {
  it.skipIf(!hasCloudInit)('layers documents as cloud-init itself does', () => {
    const script = new URL('./cloud-init.py', import.meta.url).pathname
    const output = execFileSync(python, [script], { input: JSON.stringify(Object.values(configs)) })
    const wanted: unknown[] = JSON.parse(output.toString())
    const ours = Object.values(configs).map((documents) => read(documents).config)
    expect(Object.fromEntries(Object.keys(configs).map((name, index) => [name, ours[index]]))).toEqual(
      Object.fromEntries(Object.keys(configs).map((name, index) => [name, wanted[index]])),
    )
  })

  it('lets user-data win over vendor-data, key by key', () => {
    expect(read(configs.layered).config).toEqual({
      runcmd: ['u'],
      packages: [],
      nested: { x: 1, list: [1], y: 2 },
      hostname: 'u',
      write_files: [{ path: '/v' }],
    })
  })

  it('does without vendor-data when the user says so', () => {
    const vendor = mime({ type: 'text/x-shellscript', text: '#!/bin/sh\n' })
    expect(read({ user: '#cloud-config\nvendor_data: {enabled: false}\n', vendor }).vendorScripts).toEqual([])
    expect(read({ user: '#cloud-config\n{}\n', vendor }).vendorScripts).toHaveLength(1)
  })

  it('ignores what has no header, and says so', () => {
    const { config, log } = read({ user: 'packages: [tinyproxy]\n' })
    expect(config).toEqual({})
    expect(log.join()).toContain(
      "unhandled text/x-not-multipart in user-data (part-001): 'packages: [tinyproxy] …'",
    )
  })

  it('keeps the rest when one document is broken', () => {
    const { config, log } = read({ user: '#cloud-config\na: [1\n', vendor: '#cloud-config\nb: 1\n' })
    expect(config).toEqual({ b: 1 })
    expect(log.join('\n')).toMatch(
      /failed loading yaml blob of user-data .*\n.*failed at merging in cloud config part from part-001 of user-data/,
    )
  })

  it('takes packed documents and scripts', () => {
    expect(read({ user: gzipSync('#cloud-config\na: 1\n') }).config).toEqual({ a: 1 })
    expect(read({ user: '#!/bin/sh\necho\n' }).userScripts).toMatchObject([{ text: '#!/bin/sh\necho\n' }])
    expect(read({ user: Buffer.from([0x1f, 0x8b, 1, 2]) }).log).toEqual([
      'cloud-init: user-data cannot be decompressed',
    ])
  })

  it('knows its name and its instance', () => {
    expect(read({ meta: 'instance-id: i-9\nlocal-hostname: a.b\n' })).toMatchObject({
      id: 'i-9',
      hostname: 'a',
    })
    expect(read({ meta: 'local-hostname: a\n', user: '#cloud-config\nhostname: c\n' })).toMatchObject({
      id: 'nocloud',
      hostname: 'c',
    })
    expect(read({ meta: 'a: [' })).toMatchObject({ id: 'nocloud', hostname: 'localhost' })
  })

  it('is not caught by a document that grows without end', () => {
    const bomb = `#cloud-config\na: &a [x,x,x,x,x,x,x,x,x]\n${['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'].map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefghi'[index]}`).join()}]`).join('\n')}\n`
    expect(read({ user: bomb }).log.join()).toContain('failed loading yaml blob')
  })
})
