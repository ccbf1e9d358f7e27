// Starts the reference server and its directory of DIDs on two ports of this machine, and ends when
// its standard input does, so that it cannot outlive the test that started it.
//
//   node pds.mjs <port> <port of the directory> <empty folder>

import net from 'node:net'
import path from 'node:path'

const [port, directoryPort, folder] = process.argv.slice(2)

// Both listen on every address of the machine, and neither has a setting for that.
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (at, ...rest) {
  return typeof at === 'number' || typeof at === 'string'
    ? listen.call(this, { port: Number(at), host: '127.0.0.1' }, ...rest.filter((r) => typeof r === 'function'))
    : listen.call(this, at, ...rest)
}

const { Secp256k1Keypair } = await import('@atproto/crypto')
const { PDS } = await import('@atproto/pds')
const plc = await import('@did-plc/server')
const { Database, PlcServer } = plc.Database ? plc : plc.default

const directory = PlcServer.create({ db: Database.mock(), port: Number(directoryPort) })
await directory.start()

const rotation = await Secp256k1Keypair.create({ exportable: true })
const recovery = await Secp256k1Keypair.create()
const server = await PDS.fromEnv({
  devMode: true,
  port: Number(port),
  hostname: 'localhost',
  dataDirectory: folder,
  blobstoreDiskLocation: path.join(folder, 'blobs'),
  recoveryDidKey: recovery.did(),
  plcRotationKeyK256PrivateKeyHex: Buffer.from(await rotation.export()).toString('hex'),
  adminPassword: process.env.PDS_ADMIN_PASSWORD,
  jwtSecret: process.env.PDS_JWT_SECRET,
  serviceHandleDomains: ['.test'],
  didPlcUrl: `http://127.0.0.1:${directoryPort}`,
  // Nobody: a record is asked for where it is kept, and a handle of another domain is nobody's.
  bskyAppViewUrl: 'https://appview.invalid',
  bskyAppViewDid: 'did:example:invalid',
  modServiceUrl: 'https://moderator.invalid',
  modServiceDid: 'did:example:invalid',
  inviteRequired: false,
  disableSsrfProtection: true,
})
await server.start()
console.log('READY')

process.stdin.on('end', () => process.exit(0)).resume()
