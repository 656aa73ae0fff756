import Foundation
import Glibc
import Platform
import SharedState
import Trebuchet
import TrebuchetServices
import TrebuchetTesting

extension Schema {
    fileprivate static let notes = CollectionKey<Note>(Note.notes)
    fileprivate static let diary = CollectionKey<Note>(Note.diary)
}

/// `Consistency visit PORT NAME SEED ROUNDS ROOMS`: an app that uses the services, in a separate process. It reads commands from its input:
/// `found`, `play`, `finish N`, `report`; rooms are ids with commas between them, or `-` for a reader who signs in nowhere.
@MainActor
final class ServicesTestClient {
    private struct ClientState {
        let presence: Shared<RoomPresence<ConsistencyPresence>>
        let talk: Shared<TopicChannel<String>>
    }

    private let name: String
    private let seed: UInt64
    private let rounds: Int
    private let rooms: [String]
    private let auth: Shared<AuthSession>
    private let notes: Shared<SyncedCollection<Note>>
    private let diary: Shared<SyncedCollection<Note>>
    private var clients: [String: ClientState] = [:]
    private var report: ServicesClientReport
    private var watchers: [Task<Void, Never>] = []

    static func run(_ words: [String]) async throws {
        guard words.count == 5, let port = Int(words[0]), let seed = UInt64(words[2]), let rounds = Int(words[3])
        else { exit(2) }
        var options = TrebuchetBackend.options
        options.reconnect.initialDelay = .milliseconds(5)
        options.reconnect.maximumDelay = .milliseconds(100)
        options.pingInterval = .milliseconds(500)
        options.pongTimeout = .seconds(1)
        TrebuchetBackend.setCurrent(
            TrebuchetBackend(
                transport: .webSocket(host: "127.0.0.1", port: port), credentials: InMemoryCredentialStore(),
                options: options))
        let rooms = words[4] == "-" ? [] : words[4].split(separator: ",").map(String.init)
        let client = ServicesTestClient(name: words[1], seed: seed, rounds: rounds, rooms: rooms)
        try await client.enter()
        print("joined")
        let (lines, input) = AsyncStream<String>.makeStream()
        startThread {
            while let line = readLine() { input.yield(line) }
            // The judge has gone.
            exit(0)
        }
        for await line in lines { try await client.perform(line.split(separator: " ").map(String.init)) }
    }

    private init(name: String, seed: UInt64, rounds: Int, rooms: [String]) {
        (self.name, self.seed, self.rounds, self.rooms) = (name, seed, rounds, rooms)
        report = ServicesClientReport(name: name)
        auth = Shared(.trebuchetAuth)
        notes = Shared(Schema.notes)
        diary = Shared(Schema.diary)
    }

    private func enter() async throws {
        if !rooms.isEmpty { try await auth.signInAsGuest() }
        for room in rooms {
            let data = ConsistencyPresence(name: name, room: room)
            let presence = Shared(
                .trebuchetPresence(
                    roomType: "office", roomId: room, initialPresence: data))
            let talk = Shared<TopicChannel<String>>(.trebuchetTopic(roomType: "office", topic: "talk", roomId: room))
            talk.withLock { $0.maxEvents = .max }
            clients[room] = ClientState(presence: presence, talk: talk)
            report.rooms[room] = ServicesClientReport.Room()
            for await value in presence.updates where value.isConnected { break }
            for await value in talk.updates where value.isConnected { break }
            watchers.append(
                Task { [weak self] in
                    for await value in presence.updates {
                        for peer in value.peers { self?.recordMember("\(peer.data.name)@\(peer.data.room)", in: room) }
                    }
                })
        }
        for await value in notes.updates where !value.isLoading { break }
        for await value in diary.updates where !value.isLoading { break }
        watchers.append(
            Task { [weak self, diary] in
                for await value in diary.updates {
                    for page in value.items { self?.report.writers.insert(page.owner) }
                }
            })
    }

    private func recordMember(_ member: String, in room: String) { report.rooms[room]?.seen.insert(member) }

    private func perform(_ words: [String]) async throws {
        switch words.first {
        case "found": try await notes.create(Note(id: Note.shared, owner: "all"))
        case "play":
            // It still receives requests for reports.
            Task {
                await play()
                print("played")
            }
            return
        case "finish":
            guard let number = words.last.flatMap(Int.init) else { return }
            for (room, client) in clients {
                try await client.presence.update { $0.mood = "\(number)" }
                await publish(number, in: room)
            }
        default: break
        }
        var report = report
        for (room, client) in clients {
            report.rooms[room]?.peers = client.presence.wrappedValue.peers.map(\.data)
            report.rooms[room]?.events = client.talk.wrappedValue.events.map(\.data)
        }
        report.notes = notes.wrappedValue.items.elements
        report.diary = diary.wrappedValue.items.elements
        report.isWaiting = notes.wrappedValue.isSyncing || diary.wrappedValue.isSyncing
        print("report \(String(decoding: try JSONEncoder().encode(report), as: UTF8.self))")
    }

    // MARK: Playing

    private func play() async {
        var random = RandomSource(seed: seed)
        // Another client has created it; at another node this one may not be shown it yet, and then could not update it.
        for await value in notes.updates where value.items.contains(where: { $0.id == Note.shared }) { break }
        for round in 1...max(1, rounds) {
            var calls: [OperationCall<Void>] = []
            for _ in 0..<3 { calls.append(write(using: &random)) }
            for (room, client) in clients {
                client.presence.withLock { $0.user.mood = "\(round)" }
                await publish(round, in: room)
            }
            for call in calls {
                do {
                    try await call.value
                    report.acknowledged += 1
                } catch {
                    report.failures.append("\(error)")
                }
            }
            print("round")
        }
    }

    private func publish(_ number: Int, in room: String) async {
        let label = "\(Label(name, room, number))"
        do {
            try await clients[room]?.talk.publish(label)
            report.rooms[room]?.acknowledged.append(label)
        } catch let error as TrebuchetError where [.unknownOutcome, .timeout].contains(error.code) {
            report.rooms[room]?.unknown.append(label)
        } catch {
            report.rooms[room]?.refused.append(label)
        }
    }

    /// One write whose trace tells whether it was done once.
    private func write(using random: inout RandomSource) -> OperationCall<Void> {
        report.writes += 1
        let label = "\(name)-\(report.writes)"
        switch Int.random(in: 0..<9, using: &random) {
        case 0 where !report.ownNotes.isEmpty:
            let note = report.ownNotes.remove(at: Int.random(in: report.ownNotes.indices, using: &random))
            return notes.delete(note.id, onAttempt: nil)
        case 1 where !report.ownNotes.isEmpty, 2 where !report.ownNotes.isEmpty:
            let index = Int.random(in: report.ownNotes.indices, using: &random)
            report.ownNotes[index].count += 1
            return notes.update(report.ownNotes[index].id, onAttempt: nil) { $0.count += 1 }
        case 3:
            report.text = label
            return notes.update(Note.shared, onAttempt: nil) { $0.text = label }
        case 4 where !report.tags.isEmpty:
            let tag = report.tags.remove(at: Int.random(in: report.tags.indices, using: &random))
            return notes.unlink(Note.shared, "tags", from: tag, onAttempt: nil)
        case 4, 5:
            report.tags.append(label)
            return notes.link(Note.shared, "tags", to: label, onAttempt: nil)
        case 6:
            let page = Note(id: label, owner: name)
            report.ownPages.append(page)
            return diary.create(page, onAttempt: nil)
        case 7 where !report.ownPages.isEmpty:
            let index = Int.random(in: report.ownPages.indices, using: &random)
            report.ownPages[index].count += 1
            return diary.update(report.ownPages[index].id, onAttempt: nil) { $0.count += 1 }
        default:
            let note = Note(id: label, owner: name)
            report.ownNotes.append(note)
            return notes.create(note, onAttempt: nil)
        }
    }
}
