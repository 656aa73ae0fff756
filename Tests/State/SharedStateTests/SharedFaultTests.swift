import Foundation
import Observation
import SharedState
import Testing

@Suite("Shared values in unusual situations", .timeLimit(.minutes(5)))
struct SharedFaultTests {
    private let store = SharedStore()

    @Test("an optional value in memory starts with the given value")
    func optional() {
        @Shared(.inMemory("number"), store: store) var number: Int? = 0
        #expect(number == 0)
        $number.withLock { $0 = nil }
        @Shared(.inMemory("number"), store: store) var again: Int? = 1
        #expect(again == nil)
    }

    @Test("nil in memory is a value, also without remaining wrappers")
    func nothing() {
        do {
            @Shared(.inMemory("number"), store: store) var number: Int? = 0
            $number.withLock { $0 = nil }
        }
        #expect(store.referenceCount == 0)
        @Shared(.inMemory("number"), store: store) var again: Int? = 1
        #expect(again == nil)
    }

    @Test("an initial value in memory outlives its wrappers")
    func initialValue() {
        do {
            @Shared(.inMemory("count"), store: store) var count = 5
            #expect(count == 5)
        }
        #expect(store.referenceCount == 0)
        @Shared(.inMemory("count"), store: store) var again = 6
        #expect(again == 5)
    }

    @Test("an empty file has no value, and is written to")
    func emptyFile() async throws {
        let file = URL(fileURLWithPath: "/empty.json")
        let files = InMemoryFileStorage([file: Data()])
        @Shared(.fileStorage(file), store: SharedStore(files: files)) var count = 3
        #expect(count == 3)
        #expect($count.loadError == nil)
        $count.withLock { $0 = 4 }
        try await $count.save()
        #expect(files.read(file) == Data("4".utf8))
    }

    @Test("nil in a file is nil, not the initial value")
    func nilInFile() async throws {
        let (files, file) = (ContestedStorage("1"), URL(fileURLWithPath: "/count.json"))
        let shared = Shared(wrappedValue: Int?.some(7), .fileStorage(file), store: SharedStore(files: files))
        #expect(shared.wrappedValue == 1)
        shared.withLock { $0 = nil }
        try await shared.save()
        #expect(files.text == "null")
        try await shared.load()
        #expect(shared.wrappedValue == nil)
        files.write("2")
        files.write("null")
        #expect(shared.wrappedValue == nil)
    }

    @Test("numbers that JSON cannot represent are an error, and the file stays")
    func notANumber() async throws {
        let (files, file) = (ContestedStorage("1"), URL(fileURLWithPath: "/count.json"))
        let shared = Shared(wrappedValue: 0.0, .fileStorage(file), store: SharedStore(files: files))
        shared.withLock { $0 = .nan }
        await #expect(throws: FileStorageError.self) { try await shared.save() }
        #expect(files.text == "1")
        shared.withLock { $0 = 2 }
        try await shared.save()
        #expect(files.text == "2")
    }

    @Test("copies of a wrapper follow it to another value, and wrappers derived from it do not")
    func reassigned() {
        @Shared(value: 1) var first
        let copy = $first
        let own = Shared($first)
        @SharedReader(value: 1) var reader
        let readerCopy = $reader
        $first = Shared(value: 2)
        $reader = SharedReader(value: 2)
        #expect(copy.wrappedValue == 2)
        #expect(own.wrappedValue == 1)
        #expect(readerCopy.wrappedValue == 2)
        copy.withLock { $0 = 3 }
        #expect(first == 3)
    }

    @Test("observers of a wrapper are notified when it refers to another value")
    func observedReassignment() {
        @Shared(value: 1) var first
        let changes = ChangeCounter()
        withObservationTracking {
            _ = first
        } onChange: {
            changes.tell()
        }
        $first = Shared(value: 2)
        #expect(changes.count == 1)
    }

    @Test("a wrapper's description names its type and its key")
    func descriptions() {
        struct Point: Sendable { var x = 1 }
        @Shared(value: 0) var count
        @Shared(value: "a") var text
        @Shared(.inMemory("count"), store: store) var inMemoryCount = 0
        let file = URL(fileURLWithPath: "/count.json")
        @Shared(.fileStorage(file), store: SharedStore(files: InMemoryFileStorage())) var filed = 0
        @Shared(value: Point()) var point
        #expect("\($count)" == "Shared<Int>(value: 0)")
        #expect("\($text)" == #"Shared<String>(value: "a")"#)
        #expect("\(SharedReader($count))" == "SharedReader<Int>(value: 0)")
        #expect("\($inMemoryCount)" == #"Shared<Int>(.inMemory("count"))"#)
        #expect("\($filed)" == "Shared<Int>(.fileStorage(file:///count.json))")
        #expect("\($point.x)".hasSuffix(")[dynamicMember: \\Point.x])"))
    }
}

/// A counter for any thread.
private final class ChangeCounter: Sendable {
    private let relay = Shared(value: 0)
    var count: Int { relay.wrappedValue }
    func tell() { relay.withLock { $0 += 1 } }
}
