const sector = 2048

/** The same disc under the label `cidaty`, which no cloud-init looks for. */
export function otherLabel(disc: Uint8Array): Uint8Array {
  const changed = Buffer.from(disc)
  // Of the plain and of the Joliet volume descriptor.
  changed.write('cidaty', 16 * sector + 40, 'latin1')
  Buffer.from('cidaty', 'utf16le')
    .swap16()
    .copy(changed, 17 * sector + 40)
  return changed
}

/** The same disc with its meta-data under another name, in all three kinds of names. */
export function withoutMetaData(disc: Uint8Array): Uint8Array {
  const changed = Buffer.from(disc)
  const names: [Buffer, Buffer][] = [
    [Buffer.from('META_DAT'), Buffer.from('BETA_DAT')],
    [Buffer.from('meta-data'), Buffer.from('beta-data')],
    [Buffer.from('meta-data', 'utf16le').swap16(), Buffer.from('beta-data', 'utf16le').swap16()],
  ]
  for (const [name, other] of names) {
    const at = changed.indexOf(name)
    if (at < 0) throw new Error(`the disc has no ${name}`)
    other.copy(changed, at)
  }
  return changed
}
