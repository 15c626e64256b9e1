import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { errorClass } from '../../../lib/proxmox/index.ts'
import { readWords } from '../../../lib/proxmox/words.ts'

// Every distinct error text of the recorded answers of PVE 8.4 and 9.2, with what it means to us, judged by a person.
const rows = readFileSync(new URL('../../fixtures/words.tsv', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [code = '', status = '', cloneOf = '', text = '', errors = '', more = ''] = line.split('\t')
    return { code, status, cloneOf, text, errors, more }
  })

const read = (text: string, status?: number) => readWords(text, status === undefined ? {} : { status })

describe('words', () => {
  test('has all recorded texts', () => {
    expect(rows.length).toBeGreaterThan(240)
  })

  test.each(rows)('reads $status $text $errors as $code', ({ code, status, cloneOf, text, errors, more }) => {
    const reading = readWords(text, {
      ...(status === 'task' ? {} : { status: Number(status) }),
      ...(cloneOf === '' ? {} : { cloneOf: Number(cloneOf) }),
      ...(errors === '' ? {} : { detail: JSON.parse(errors) }),
    })
    expect(reading).toEqual({ code, ...(more === '' ? {} : JSON.parse(more)) })
    expect(errorClass).toHaveProperty(code)
  })

  // Texts that the sources show but the recordings do not. Source: as named in words.ts.
  test.each([
    ["cfs-lock 'storage-nfs' error: got lock request timeout", 'Locked'],
    ["cfs-lock 'file-user_cfg' error: no quorum!", 'NoQuorum'],
    ["clone failed: can't lock file '/var/lock/pve-manager/pve-storage-vmdata' - got timeout", 'Locked'],
    [
      "clone failed: can't add VM 101 to pool 'egress': cfs-lock 'file-user_cfg' error: got lock request timeout",
      'Locked',
    ],
    ['clone failed: interrupted by signal', 'Interrupted'],
    ["'storage-nfs'-locked command timed out - aborting", 'Locked'],
    ["storage 'nfs' is not online", 'StorageOffline'],
    ["storage 'nfs' is not available on node 'pve1'", 'UnsupportedStorage'],
    ['checksum missmatch (file change by other user?)', 'DigestMismatch'],
    ['starting worker failed: unable to fork worker - Cannot allocate memory', 'NoWorker'],
    ['No QEMU guest agent configured', 'AgentOff'],
    ['unable to open monitor socket', 'AgentSilent'],
    ['volume local:iso/empty.iso does not exist', 'VolumeMissing'],
    [
      'lvcreate \'pve/vm-101-disk-0\' error:   Volume group "pve" has insufficient free space (5 extents): 512 required.',
      'NoSpace',
    ],
    ["zfs error: cannot create 'tank/vm-101-disk-0': out of space", 'NoSpace'],
    ["clone failed: disk image '/srv/images/101/vm-101-cloudinit.qcow2' already exists", 'VolumeExists'],
    [
      `clone failed: lvcreate 'pve/vm-101-cloudinit' error:   Logical Volume "vm-101-cloudinit" already exists in volume group "pve"`,
      'VolumeExists',
    ],
    [
      "clone failed: zfs error: cannot create 'tank/vm-101-cloudinit': dataset already exists",
      'VolumeExists',
    ],
    ["rbd create 'vm-101-cloudinit' error: rbd: create error: (17) File exists", 'VolumeExists'],
    ['proxy loop detected', 'Unreachable'],
    ['something nobody has ever seen', 'Unknown'],
    ['', 'Unknown'],
  ])('reads %j as %s', (text, code) => {
    expect(read(text, 500).code).toBe(code)
    expect(read(`${text}\n`).code).toBe(code)
  })

  test.each([
    'could not stat: VM is locked (backup)',
    "disk image '/x' does not exist, Configuration file 'nodes/pve1/qemu-server/1.conf' does not exist",
    "script 'local:snippets/x.sh' does not exist",
    'the VM 101 already exists',
  ])('does not recognise a phrase in the middle of %j', (text) => {
    expect(read(text, 500).code).toBe('Unknown')
  })

  test('takes the target’s lock of a clone for somebody else’s clone, the source’s for a busy template', () => {
    const lockOf = (vmid: number) => `can't lock file '/var/lock/qemu-server/lock-${vmid}.conf' - got timeout`
    expect(readWords(lockOf(101), { cloneOf: 9000 }).code).toBe('AlreadyExists')
    expect(readWords(lockOf(9000), { cloneOf: 9000 }).code).toBe('Locked')
    expect(readWords(lockOf(101)).code).toBe('Locked')
  })

  test('reads a refusal inside a task with its privilege', () => {
    expect(read("403 Permission check failed (/, Sys.Modify for modifying tag 'x')")).toEqual({
      code: 'Forbidden',
      path: '/',
      privilege: 'Sys.Modify',
    })
    expect(read('400 Parameter verification failed. ide2: hotplug problem - busy').code).toBe('Rejected')
  })

  test('does not take a 400 without words for a wrong parameter', () => {
    expect(read('Bad Request', 400).code).toBe('Unknown')
  })
})
