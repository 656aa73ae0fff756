internal import Foundation
internal import Glibc
internal import Platform
internal import SharedState
internal import Trebuchet
internal import TrebuchetServices

/// An app of the services in a separate process, controlled by a test.
@MainActor
package final class ServicesClient {
    private let auth: Shared<AuthSession>
    private let notes: Shared<SyncedCollection<Note>>
    private var presence: Shared<RoomPresence<OfficePresence>>?
    private var talk: Shared<TopicChannel<String>>?

    /// - Parameter arguments: the program, then host and port of the server, and the file of the credential.
    package static func run(_ arguments: [String]) async throws {
        // A wait without success ends the process, and with it the wait of the test for the reply.
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
        case .join(let data):
            let presence = Shared(
                .trebuchetPresence(Schema.Rooms.office, roomId: "1", initialPresence: data))
            let talk = Shared(.trebuchetTopic(Schema.Topics.talk, roomId: "1"))
            (self.presence, self.talk) = (presence, talk)
            await shows(presence) { $0.isConnected }
            await shows(talk) { $0.isConnected }
        case .show(let data): try await presence?.update { $0 = data }
        case .awaitPeers(let presences): await shows(presence) { $0.peers.map(\.data) == presences }
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

    /// Returns when the value meets the condition.
    private func shows<Value>(_ shared: Shared<Value>?, _ condition: (Value) -> Bool) async {
        guard let shared else { return }
        for await value in shared.updates where condition(value) { return }
    }
}
