import Foundation
import SharedState
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

@MainActor @Suite(.timeLimit(.minutes(5))) struct CollectionOfflineTests {
    /// A guest behind a link, and one that is always connected.
    private func behindLink(
        _ body: (CollectionTestEnvironment, FaultyLink, Shared<SyncedCollection<Todo>>, Shared<SyncedCollection<Todo>>)
            async throws -> Void
    ) async throws {
        try await CollectionTestEnvironment.run { environment in
            let link = try FaultyLink(to: environment.address, seed: 1)
            let (away, other) = (environment.guest(at: link.address).todos(), environment.guest().todos())
            await shows(away) { !$0.isLoading }
            await shows(other) { !$0.isLoading }
            try await body(environment, link, away, other)
            await link.close()
        }
    }

    /// Cuts the link, and refuses connections until `body` has returned.
    private func offline(_ link: FaultyLink, _ body: () async throws -> Void) async throws {
        try await link.refuseConnections {
            await link.disconnectAll()
            try await body()
        }
    }

    @Test("offline writes are shown immediately, keep their order, and are sent once there is a connection again")
    func queueAndFlush() async throws {
        try await behindLink { _, link, away, other in
            var settled: [String] = []
            try await offline(link) {
                away.create(Todo(id: "1", title: "Milk"), onSettled: { _ in settled.append("create") })
                away.update("1", onSettled: { _ in settled.append("update") }) { $0.isDone = true }
                away.create(Todo(id: "2"), onSettled: { _ in settled.append("second") })
                #expect(
                    away.wrappedValue.items.elements == [Todo(id: "1", title: "Milk", isDone: true), Todo(id: "2")])
                #expect(away.wrappedValue.isSyncing && settled.isEmpty)
                try await other.create(Todo(id: "3"))
                #expect(other.wrappedValue.items.ids == ["3"])
            }
            await shows(other) { Set($0.items.ids) == ["1", "2", "3"] && $0.items[id: "1"]?.isDone == true }
            await shows(away) { Set($0.items.ids) == ["1", "2", "3"] && !$0.isSyncing }
            #expect(await eventually { settled.count == 3 })
            #expect(settled == ["create", "update", "second"])
        }
    }

    @Test("offline changes of different fields merge with those of other clients")
    func merge() async throws {
        try await behindLink { _, link, away, other in
            try await other.create(Todo(id: "1", title: "Milk"))
            await shows(away) { $0.items.count == 1 }
            try await offline(link) {
                away.update("1", onError: nil) { $0.isDone = true }
                try await other.update("1") { $0.title = "Tea" }
            }
            let merged = Todo(id: "1", title: "Tea", isDone: true)
            await shows(away) { $0.items.elements == [merged] && !$0.isSyncing }
            await shows(other) { $0.items.elements == [merged] }
        }
    }

    @Test("the last change of a field to reach the server wins, although it was made earlier")
    func lastWriteWins() async throws {
        try await behindLink { _, link, away, other in
            try await other.create(Todo(id: "1", title: "Milk"))
            await shows(away) { $0.items.count == 1 }
            try await offline(link) {
                away.update("1", onError: nil) { $0.title = "made first" }
                try await other.update("1") { $0.title = "made second" }
            }
            await shows(away) { $0.items.elements == [Todo(id: "1", title: "made first")] && !$0.isSyncing }
            await shows(other) { $0.items.elements == [Todo(id: "1", title: "made first")] }
        }
    }

    @Test("many changes of one field, before and after a cut, end with the last one")
    func rapid() async throws {
        try await behindLink { _, link, away, other in
            try await away.create(Todo(id: "1"))
            for number in 1...20 { away.update("1", onError: nil) { $0.priority = number } }
            try await offline(link) {
                for number in 21...60 { away.update("1", onError: nil) { $0.priority = number } }
                #expect(away.wrappedValue.items[0].priority == 60)
            }
            await shows(other) { $0.items.first?.priority == 60 }
            await shows(away) { $0.items.first?.priority == 60 && !$0.isSyncing }
            #expect(away.wrappedValue.error == nil)
        }
    }

    @Test("a link does not overtake the create before it")
    func links() async throws {
        try await behindLink { _, link, away, other in
            try await offline(link) {
                away.create(Todo(id: "list"), onError: nil)
                away.create(Todo(id: "item"), onError: nil)
                away.link("list", "tags", to: "item", onError: nil)
                #expect(away.wrappedValue.items[id: "list"]?.tags == ["item"])
            }
            await shows(other) { $0.items[id: "list"]?.tags == ["item"] && $0.items.count == 2 }
            await shows(away) { !$0.isSyncing }
            #expect(away.wrappedValue.error == nil)
        }
    }

    @Test("a pending write is kept when others change the document, and deletions take effect")
    func refresh() async throws {
        try await behindLink { _, link, away, other in
            for id in ["1", "2", "3"] { try await other.create(Todo(id: id)) }
            await shows(away) { $0.items.count == 3 }
            let watching = Task {
                for await value in away.updates {
                    if value.items[id: "1"]?.title == "mine", value.items[id: "2"] == nil { return true }
                }
                return false
            }
            try await offline(link) {
                away.update("1", onError: nil) { $0.title = "mine" }
                try await other.update("1") { $0.priority = 7 }
                try await other.delete("2")
                away.delete("3", onError: nil)
            }
            #expect(await watching.value)
            await shows(away) { $0.items.elements == [Todo(id: "1", title: "mine", priority: 7)] && !$0.isSyncing }
            await shows(other) { $0.items.elements == [Todo(id: "1", title: "mine", priority: 7)] }
        }
    }

    @Test("a write refused after the reconnection is rolled back and reported; later ones are executed")
    func refusedLater() async throws {
        try await behindLink { _, link, away, other in
            var errors: [CollectionError?] = []
            try await offline(link) {
                away.create(Todo(id: "1", title: "mine"), onError: { errors.append($0 as? CollectionError) })
                away.create(Todo(id: "2"), onError: { errors.append($0 as? CollectionError) })
                try await other.create(Todo(id: "1", title: "other's"))
            }
            await shows(away) { Set($0.items.map(\.title)) == ["other's", ""] && !$0.isSyncing }
            #expect(await eventually { errors == [.alreadyExists(id: "1")] })
        }
    }

    @Test("a write cancelled before it was sent is rolled back, and its callbacks run")
    func cancelled() async throws {
        try await behindLink { _, link, away, other in
            var outcomes: [Bool] = []
            try await offline(link) {
                // The first may be in flight when the link is cut; the second waits behind it.
                away.create(Todo(id: "1"), onError: nil)
                for _ in 0..<CollectionLimits.mutationsPerCall { away.update("1", onError: nil) { $0.priority += 1 } }
                let call = away.create(Todo(id: "2"), onSettled: { outcomes.append((try? $0.get()) != nil) })
                call.cancel()
                await shows(away) { $0.items.ids == ["1"] }
                #expect(await eventually { outcomes == [false] })
            }
            await shows(away) { !$0.isSyncing }
            await shows(other) { $0.items.first?.priority == 32 }
            #expect(other.wrappedValue.items.ids == ["1"])
        }
    }

    @Test("pending writes survive a restart of the app, and are executed once")
    func restart() async throws {
        try await CollectionTestEnvironment.run { environment in
            let link = try FaultyLink(to: environment.address, seed: 1)
            let (folder, files) = (URL(fileURLWithPath: "/pending"), InMemoryFileStorage())
            let other = environment.guest().todos()
            try await other.create(Todo(id: "1"))
            let first = CollectionTestClient(at: link.address)
            first.backend.persistPendingWrites(in: folder, files: files)
            let before = first.todos()
            await shows(before) { $0.items.count == 1 }
            // The server executes this write, and its response is lost.
            await link.pauseTraffic()
            let lost = before.link("1", "tags", to: "x", onError: nil)
            try await offline(link) {
                before.create(Todo(id: "2"), onError: nil)
                before.update("2", onError: nil) { $0.title = "made offline" }
                await first.client.close()
                await #expect(throws: CollectionError.persistedForLater) { try await lost.value }
            }
            let second = CollectionTestClient(at: environment.address)
            second.backend.persistPendingWrites(in: folder, files: files)
            let after = second.todos()
            #expect(after.wrappedValue.items.map(\.title) == ["made offline"], "shown before there is a connection")
            await shows(after) { $0.items.ids == ["1", "2"] && !$0.isSyncing }
            await shows(other) { $0.items[id: "2"]?.title == "made offline" && $0.items[id: "1"]?.tags == ["x"] }
            let third = CollectionTestClient(at: environment.address)
            third.backend.persistPendingWrites(in: folder, files: files)
            #expect(!third.todos().wrappedValue.isSyncing, "executed writes are not kept")
            await link.resumeTraffic()
            await link.close()
        }
    }

    @Test("a persisted write that is refused is rolled back and removed; later ones are executed")
    func refusedAfterRestart() async throws {
        try await CollectionTestEnvironment.run { environment in
            let link = try FaultyLink(to: environment.address, seed: 1)
            let (folder, files) = (URL(fileURLWithPath: "/pending"), InMemoryFileStorage())
            let other = environment.guest().todos()
            let first = CollectionTestClient(at: link.address)
            first.backend.persistPendingWrites(in: folder, files: files)
            let before = first.todos()
            await shows(before) { !$0.isLoading }
            try await offline(link) {
                before.create(Todo(id: "1", title: "mine"), onError: nil)
                before.create(Todo(id: "2"), onError: nil)
                try await other.create(Todo(id: "1", title: "other's"))
                await first.client.close()
            }
            let second = CollectionTestClient(at: environment.address)
            second.backend.persistPendingWrites(in: folder, files: files)
            let after = second.todos()
            #expect(after.wrappedValue.items.map(\.title) == ["mine", ""])
            await shows(after) { Set($0.items.map(\.title)) == ["other's", ""] && !$0.isSyncing }
            let refusal = WriteRejectedError(id: "1", command: "create", reason: .alreadyExists(id: "1"))
            await shows(after) { $0.writeError as? WriteRejectedError == refusal }
            let third = CollectionTestClient(at: environment.address)
            third.backend.persistPendingWrites(in: folder, files: files)
            let restored = third.todos().wrappedValue
            #expect(!restored.isSyncing && restored.items[id: "1"]?.title != "mine")
            await link.close()
        }
    }

    @Test("without a connection a value shows its known documents, even after a load, and a new query is loading")
    func readingOffline() async throws {
        try await CollectionTestEnvironment.run { environment in
            let link = try FaultyLink(to: environment.address, seed: 1)
            let (guest, other) = (environment.guest(at: link.address), environment.guest().todos())
            try await other.create(Todo(id: "1"))
            let first = guest.todos()
            await shows(first) { $0.items.ids == ["1"] }
            var values: [Shared<SyncedCollection<Todo>>] = []
            try await offline(link) {
                for await state in guest.client.connectionState.stream where state != .connected { break }
                values = [guest.todos(), guest.todos(where: [.field("isDone", equals: .bool(false))])]
                try await values[0].load()
                #expect(values[0].wrappedValue.items.ids == ["1"] && !values[0].wrappedValue.isLoading)
                #expect(values[1].wrappedValue.items.isEmpty && values[1].wrappedValue.isLoading)
                try await other.create(Todo(id: "2"))
            }
            for value in values { await shows(value) { $0.items.ids == ["1", "2"] } }
            await link.close()
        }
    }

    @Test("unreadable pending writes are an error, and are kept unchanged")
    func damagedFile() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (folder, files) = (URL(fileURLWithPath: "/pending"), InMemoryFileStorage())
            let file = folder.appendingPathComponent("todos.json")
            files.replace(file, with: Data("{".utf8))
            let guest = CollectionTestClient(at: environment.address)
            guest.backend.persistPendingWrites(in: folder, files: files)
            let todos = guest.todos()
            let error = await #expect(throws: CollectionError.self) { try await todos.create(Todo(id: "1")) }
            guard case .pendingNotPersisted? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(todos.wrappedValue.readError != nil)
            #expect(files.read(file) == Data("{".utf8))
        }
    }

    @Test("a closed client settles pending writes")
    func closed() async throws {
        try await behindLink { _, link, away, _ in
            var errors = 0
            try await offline(link) {
                let call = away.create(Todo(id: "1"), onError: { _ in errors += 1 })
                await away.wrappedValue.link?.client.close()
                await #expect(throws: TransportError.self) { try await call.value }
            }
            #expect(errors == 1)
        }
    }
}
