import Foundation
import Networking
import ServicesClient
import TestSupport
import Testing
import Transports
import TrebuchetServices
import TrebuchetTesting

@testable import TrebuchetCLI

/// All services together: a server and its clients in separate processes, over unreliable connections.
@Suite(.timeLimit(.minutes(5))) struct TwoClientsTests {
    private static let seeds: ClosedRange<UInt64> =
        ProcessInfo.processInfo.environment["TREBUCHET_LONG_TESTS"] == "1" ? 1...20 : 1...2

    private static let faults: FaultyLink.Faults = {
        var faults = FaultyLink.Faults.harsh
        faults.cutAfterBytes = 300...6_000
        return faults
    }()

    @Test(
        "two users sign in, see each other and edit one collection over broken connections; both end with the server's data",
        arguments: seeds)
    func twoClients(seed: UInt64) async throws {
        let office = try await ServicesFixture()
        defer { office.remove() }
        let links = try [seed * 2, seed * 2 + 1].map { try FaultyLink(to: office.address, seed: $0) }
        let ada = try office.client("ada", at: links[0].address)
        let bob = try office.client("bob", at: links[1].address)

        // Their identities
        var ids: Set<String> = []
        for (client, email) in [(ada, "ada@example.org"), (bob, "bob@example.org")] {
            let guest = try #require(try await client.ask(.signInAsGuest).user)
            #expect(guest.isGuest)
            try await client.ask(.sendCode(email: email))
            let user = try await client.ask(.verify(email: email, code: try office.mailbox.code(sentTo: email))).user
            #expect(user == User(id: guest.id, email: email), "the guest keeps the id")
            ids.insert(guest.id)
        }
        #expect(ids.count == 2)

        // They see each other and receive events
        try await ada.ask(.join(OfficePresence(name: "Ada")))
        try await bob.ask(.join(OfficePresence(name: "Bob")))
        try await ada.ask(.awaitPeers([OfficePresence(name: "Bob")]))
        try await bob.ask(.awaitPeers([OfficePresence(name: "Ada")]))
        try await ada.ask(.publish("hello Bob"))
        try await bob.ask(.publish("hello Ada"))
        try await ada.ask(.awaitEvents(["hello Ada"]))
        try await bob.ask(.awaitEvents(["hello Bob"]))

        // Their writes while the connections break
        try await office.client("founder").ask(.create(NoteEdits.shared))
        for link in links {
            await link.setFaults(Self.faults)
            await link.disconnectAll()
        }
        try ada.send(.edit(name: "ada", seed: seed, rounds: 15))
        try bob.send(.edit(name: "bob", seed: ~seed, rounds: 15))
        let replies = [try await ada.reply(), try await bob.reply()]
        let edits = try replies.map { try #require($0.edits) }
        for (link, edits) in zip(links, edits) {
            #expect(edits.failures == [], "no other client writes these; seed \(seed)")
            #expect(edits.acknowledged == edits.writes, "seed \(seed)")
            #expect(link.counters.accepted > 4, "the connection was cut repeatedly; seed \(seed)")
            await link.setFaults(.none)
            await link.disconnectAll()
        }

        // A final check over reliable connections
        try await ada.ask(.show(OfficePresence(name: "Ada", mood: "done")))
        try await bob.ask(.show(OfficePresence(name: "Bob", mood: "done")))
        try await ada.ask(.awaitPeers([OfficePresence(name: "Bob", mood: "done")]))
        try await bob.ask(.awaitPeers([OfficePresence(name: "Ada", mood: "done")]))
        try await ada.ask(.publish("bye Bob"))
        try await bob.ask(.publish("bye Ada"))
        try await ada.ask(.awaitEvents(["hello Ada", "bye Ada"]))
        try await bob.ask(.awaitEvents(["hello Bob", "bye Bob"]))

        // The server has each write once
        let notes = try #require(try await office.client("reader").ask(.readNotes).notes)
        #expect(
            notes.filter { $0.id != NoteEdits.shared.id } == edits.flatMap(\.notes).sorted { $0.id < $1.id },
            "seed \(seed)")
        let shared = try #require(notes.first { $0.id == NoteEdits.shared.id })
        #expect(shared.tags.sorted() == edits.flatMap(\.tags).sorted(), "seed \(seed)")
        #expect(edits.map(\.text).contains(shared.text), "the last write wins; seed \(seed)")
        try await ada.ask(.awaitNotes(notes))
        try await bob.ask(.awaitNotes(notes))

        #expect(await ada.process.finish().status == 0)
        #expect(await bob.process.finish().status == 0)
        for link in links { await link.close() }
        #expect(await office.server.stop() == 0)
    }
}

/// A server with all services, and a folder for its data and that of its clients.
private struct ServicesFixture {
    let server: ServeProcess
    let address: SocketAddress
    let mailbox: Mailbox
    private let folder: String

    init() async throws {
        folder = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        mailbox = try Mailbox(in: folder)
        server = try await ServeProcess(arguments: [
            "--data", folder + "/data", "--services", "auth,rooms,collections", "--mail-command",
            mailbox.command,
        ])
        let url = try RemoteURL(server.url)
        address = SocketAddress(host: url.host, port: url.port, isIPv6: false)
    }

    func remove() { try? FileManager.default.removeItem(atPath: folder) }

    /// - Parameter address: Default: the server's own address.
    func client(_ name: String, at address: SocketAddress? = nil) throws -> ClientProcess {
        let address = address ?? self.address
        return ClientProcess(
            name: name,
            process: try ChildProcess(
                ServeProcess.built("ServicesClientTool"),
                [address.host, "\(address.port)", "\(folder)/\(name).credential"]))
    }
}

private struct ClientProcess {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let name: String
    let process: ChildProcess

    func send(_ command: ClientCommand) throws {
        try process.send(String(decoding: JSONEncoder().encode(command), as: UTF8.self))
    }

    func reply() async throws -> ClientReply {
        guard let line = await process.nextLine() else { throw Failure(description: "\(name) ended without a reply") }
        let reply = try JSONDecoder().decode(ClientReply.self, from: Data(line.utf8))
        if let error = reply.error { throw Failure(description: "\(name): \(error)") }
        return reply
    }

    @discardableResult
    func ask(_ command: ClientCommand) async throws -> ClientReply {
        try send(command)
        do {
            return try await reply()
        } catch {
            throw Failure(description: "\(error), to \(command)")
        }
    }
}
