import Foundation
import SharedState
import TestSupport
import Testing

extension SharedReaderKey where Self == InMemoryKey<Int>.Default {
    fileprivate static var level: Self { Self[.inMemory("level"), default: 7] }
}

/// Wrappers derived from other wrappers, and wrappers that change their key.
@Suite(.timeLimit(.minutes(5)))
struct SharedProjectionTests {
    private struct Row: Equatable, Identifiable, Sendable {
        let id: Int
        var name: String
    }

    private struct Nothing: Error {}

    private let store = SharedStore()

    @Test("a non-nil optional unwraps to a shared value, which keeps its last value when it becomes nil")
    func unwrapped() throws {
        @Shared(value: String?.none) var name
        #expect(Shared($name) == nil)
        #expect(SharedReader($name) == nil)
        $name.withLock { $0 = "a" }
        let unwrapped: Shared<String> = try #require(Shared($name))
        let reader: SharedReader<String> = try #require(SharedReader($name))
        unwrapped.withLock { $0 += "b" }
        #expect(name == "ab")
        #expect(reader.wrappedValue == "ab")
        $name.withLock { $0 = nil }
        #expect(unwrapped.wrappedValue == "ab")
        unwrapped.withLock { $0 = "c" }
        #expect(name == nil)
        #expect(reader.wrappedValue == "ab")
    }

    @Test("a closure derives a read-only value and its updates")
    func computed() async {
        @Shared(value: [1, 2]) var numbers
        let count = $numbers.read { $0.count }
        let text = count.read { "\($0)" }
        #expect(text.wrappedValue == "2")
        $numbers.withLock { $0.append(3) }
        #expect(count.wrappedValue == 3)
        var updates = text.updates.makeAsyncIterator()
        #expect(await updates.next(isolation: #isolation) == "3")
    }

    @Test("the elements of an array are separate shared values")
    func elements() throws {
        @Shared(value: IdentifiedArrayOf<Row>(uniqueElements: [Row(id: 1, name: "a"), Row(id: 2, name: "b")])) var rows
        let parts: [Shared<Row>] = Array($rows)
        parts[1].withLock { $0.name = "c" }
        #expect(rows.map(\.name) == ["a", "c"])
        #expect(Array(SharedReader($rows)).map(\.wrappedValue.name) == ["a", "c"])
        let first: Shared<Row> = try #require(Shared($rows[id: 1]))
        $rows.withLock { _ = $0.remove(id: 1) }
        first.withLock { $0.name = "d" }
        #expect(rows.map(\.name) == ["c"])
        #expect(Shared($rows[id: 1]) == nil)
        #expect(first.wrappedValue.name == "a")
    }

    @Test("a wrapper and its copies change to another key, with its value or the previous one")
    func loadKey() async throws {
        @Shared(.inMemory("there"), store: store) var there = 5
        @Shared(value: 1) var count
        let copy = $count
        try await $count.load(.inMemory("there"), store: store)
        #expect(count == 5)
        copy.withLock { $0 = 6 }
        #expect(there == 6)
        try await $count.load(.inMemory("new"), store: store)
        #expect(count == 6)
        try await $count.load(.level, store: store)
        #expect(copy.wrappedValue == 7)
        @SharedReader(value: 1) var reader
        try await $reader.load(.inMemory("there"), store: store)
        #expect(reader == 6)
    }

    @Test("a failed load of another key throws its error")
    func loadKeyFails() async {
        let file = URL(fileURLWithPath: "/count.json")
        let files = SharedStore(files: InMemoryFileStorage([file: Data("x".utf8)]))
        @Shared(value: 1) var count
        await #expect(throws: FileStorageError.self) { try await $count.load(.fileStorage(file), store: files) }
        #expect($count.loadError is FileStorageError)
        #expect(count == 1)
    }

    @Test("a required value exists, or it is an error")
    func required() async throws {
        let file = URL(fileURLWithPath: "/count.json")
        let files = InMemoryFileStorage()
        await #expect(throws: MissingValue.self) {
            try await Shared<Int>(require: .fileStorage(file), store: SharedStore(files: files))
        }
        files.replace(file, with: Data("x".utf8))
        await #expect(throws: FileStorageError.self) {
            try await SharedReader<Int>(require: .fileStorage(file), store: SharedStore(files: files))
        }
        files.replace(file, with: Data("3".utf8))
        let store = SharedStore(files: files)
        let count = try await Shared<Int>(require: .fileStorage(file), store: store)
        let reader = try await SharedReader<Int>(require: .fileStorage(file), store: store)
        count.withLock { $0 += 1 }
        #expect(reader.wrappedValue == 4)
    }

    @Test("a required value is loaded once: nothing is loading afterwards, and no later load leaves an error")
    func requiredOnce() async throws {
        let backend = Backend<Int>(.later)
        async let waiting = Shared<Int>(require: backend.key, store: store)
        #expect(await eventually { backend.loads.count == 1 }, "the key's load has started")
        backend.answer(.error(Nothing()))
        backend.loads[0].resume(returning: 5)
        let count = try await waiting
        #expect(count.wrappedValue == 5)
        #expect(!count.isLoading && count.loadError == nil)
        #expect(backend.loads.count == 1)
        #expect(backend.subscribers.count == 1)
        // Another wrapper finds it, and loads its required value again.
        await #expect(throws: Nothing.self) { try await Shared<Int>(require: backend.key, store: store) }
        #expect(backend.loads.count == 2)
        #expect(withExtendedLifetime(count) { store.referenceCount } == 1)
    }

    @Test("a wrapper that changes to another key loads it once")
    func loadKeyOnce() async throws {
        let backend = Backend<Int>(.later)
        @Shared(value: 1) var count
        let shared = $count
        async let loading: Void = shared.load(backend.key, store: store)
        #expect(await eventually { shared.isLoading }, "the wrapper has the key, whose load has started")
        backend.loads[0].resume(returning: 5)
        try await loading
        #expect(count == 5)
        #expect(!$count.isLoading)
        #expect(backend.loads.count == 1)
    }

    @Test("a required value that could not be loaded leaves nothing behind")
    func requiredFails() async throws {
        let backend = Backend<Int>(.initialValue)
        await #expect(throws: MissingValue.self) { try await SharedReader<Int>(require: backend.key, store: store) }
        backend.answer(.value(3))
        let count = try await SharedReader<Int>(require: backend.key, store: store)
        #expect(count.wrappedValue == 3)
        #expect(backend.loads.count == 2)
    }

    @Test("a key with a default for an optional value starts with the default, and one without with nil")
    func optionalDefault() {
        @Shared(.nickname, store: store) var nickname
        #expect(nickname == "Ada")
        @SharedReader(.nickname, store: store) var same: String?
        #expect(same == "Ada")
        @Shared(.inMemory("surname"), store: store) var surname: String?
        #expect(surname == nil)
        $nickname.withLock { $0 = nil }
        #expect(same == nil)
    }

    @Test("a key with a default identifies the same value as the key alone, for every wrapper")
    func fallbackValue() async throws {
        func shared<Key: SharedKey<Int>>(_ key: Key) -> Shared<Int> { Shared(wrappedValue: 0, key, store: store) }
        @Shared(.level, store: store) var level
        $level.withLock { $0 = 5 }
        let required = try await Shared<Int>(require: .level, store: store)
        required.withLock { $0 += 1 }
        #expect(level == 6)
        let found = shared(InMemoryKey<Int>.Default.level)
        found.withLock { $0 += 1 }
        #expect(level == 7)
        let twice = shared(InMemoryKey<Int>.Default.Default[.level, default: 1])
        twice.withLock { $0 += 1 }
        #expect(level == 8)
        #expect($level.key is InMemoryKey<Int>)
    }

    @Test("readers are created from a key with a default, and with another initial value")
    func readers() {
        #expect(SharedReaderKeyDefaults.level.initialValue == 7)
        let reader = SharedReader(wrappedValue: 3, .level, store: store)
        #expect(reader.wrappedValue == 3)
        let shared = Shared(wrappedValue: 4, .level, store: store)
        #expect(shared.wrappedValue == 3)
    }

    @Test("a key can report that its value no longer exists")
    func initialValue() {
        let backend = Backend<Int>()
        @Shared(backend.key, store: store) var count = 3
        backend.subscriber.yield(5)
        #expect(count == 5)
        backend.subscriber.yieldReturningInitialValue()
        #expect(count == 3)
    }
}

extension SharedReaderKey where Self == InMemoryKey<String?>.Default {
    fileprivate static var nickname: Self { Self[.inMemory("nickname"), default: "Ada"] }
}

private enum SharedReaderKeyDefaults {
    static var level: InMemoryKey<Int>.Default { .level }
}
