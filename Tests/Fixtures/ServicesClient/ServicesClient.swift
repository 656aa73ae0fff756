internal import Foundation
internal import Glibc
internal import Platform
internal import SharedState
internal import Trebuchet
internal import TrebuchetServices

/// An app of the services in a process of its own, that a test tells what to do.
@MainActor
package final class ServicesClient {
    private let auth: Shared<AuthSession>
    private let notes: Shared<SyncedCollection<Note>>
    private var presence: Shared<RoomPresence<Visitor>>?
    private var talk: Shared<TopicChannel<String>>?

    /// - Parameter arguments: the program, then host and port of the server, and the file of the credential.
    package static func run(_ arguments: [String]) async throws {
        // What is waited for in vain ends the process, and so the test's waiting for the reply.
        alarm(60)
        guard arguments.count == 4, let port = Int(arguments[2]) else { exit(2) }
        var options = TrebuchetBackend.options
        options.reconnect.initialDelay = .milliseconds(2)
        options.reconnect.maximumDelay = .milliseconds(20)
        let backend = TrebuchetBackend(
            transport: .webSocket(host: arguments[1], port: port),
            credentials: FileCredentialStore(path: arguments[3]), options: options)
        TrebuchetBackend.setCurrent(backend)
        let client = ServicesClient()
        while let line = await onThread({ readLine() }) {
            var reply = ClientReply()
            do {
                try await client.perform(JSONDecoder().decode(ClientCommand.self, from: Data(line.utf8)), &reply)
            } catch {
                reply.error = "\(error)"
            }
            print(String(decoding: try JSONEncoder().encode(reply), as: UTF8.self))
            fflush(nil)
        }
        await backend.client.close()
    }

    private init() {
        auth = Shared(.trebuchetAuth)
        notes = Shared(Schema.notes)
    }

    private func perform(_ command: ClientCommand, _ reply: inout ClientReply) async throws {
        switch command {
        case .signInAsGuest: reply.user = try await auth.signInAsGuest()
        case .sendCode(let email): try await auth.sendMagicCode(to: email)
        case .verify(let email, let code): reply.user = try await auth.verifyMagicCode(email: email, code: code)
        case .join(let visitor):
            let presence = Shared(
                .trebuchetPresence(Schema.Rooms.office, roomId: "1", initialPresence: visitor))
            let talk = Shared(.trebuchetTopic(Schema.Topics.talk, roomId: "1"))
            (self.presence, self.talk) = (presence, talk)
            await shows(presence) { $0.isConnected }
            await shows(talk) { $0.isConnected }
        case .show(let visitor): try await presence?.update { $0 = visitor }
        case .awaitPeers(let visitors): await shows(presence) { $0.peers.map(\.data) == visitors }
        case .publish(let text): try await talk?.publish(text)
        case .awaitEvents(let texts): await shows(talk) { $0.events.map(\.data) == texts }
        case .create(let note): try await notes.create(note)
        case .edit(let name, let seed, let rounds):
            await shows(notes) { $0.items[id: NoteEdits.shared.id] != nil }
            var edits = NoteEdits(name: name)
            await edits.run(rounds, on: notes, seed: seed)
            reply.edits = edits
        case .readNotes:
            await shows(notes) { !$0.isLoading }
            reply.notes = sortedNotes(notes.wrappedValue)
        case .awaitNotes(let wanted): await shows(notes) { sortedNotes($0) == wanted && !$0.isSyncing }
        }
    }

    private func sortedNotes(_ notes: SyncedCollection<Note>) -> [Note] { notes.items.sorted { $0.id < $1.id } }

    /// Returns when the value is so.
    private func shows<Value>(_ shared: Shared<Value>?, _ condition: (Value) -> Bool) async {
        guard let shared else { return }
        for await value in shared.updates where condition(value) { return }
    }
}
