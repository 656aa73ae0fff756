import Foundation
import SharedState
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SharedStoreTests {
    /// App code that does not use stores explicitly.
    private struct Counter: Sendable {
        @Shared(.inMemory("SharedStoreTests.count")) var count = 0

        func countUp() { $count.withLock { $0 += 1 } }
    }

    @Test("concurrent tests with separate stores are isolated", arguments: 0..<16)
    func isolation(number: Int) async {
        await SharedStore.$current.withValue(SharedStore()) {
            let counter = Counter()
            for _ in 0..<100 {
                counter.countUp()
                await Task.yield()
            }
            #expect(counter.count == 100)
        }
    }

    @Test("the store of a task is inherited by child tasks and those it starts")
    func inheritance() async {
        await SharedStore.$current.withValue(SharedStore()) {
            let counter = Counter()
            await Task { Counter().countUp() }.value
            async let child: Void = Counter().countUp()
            await child
            #expect(counter.count == 2)
        }
    }

    @Test("a wrapper keeps the store it was created with")
    func storeOfCreation() {
        let store = SharedStore()
        let counter = SharedStore.$current.withValue(store) { Counter() }
        counter.countUp()
        #expect(counter.count == 1)
        @Shared(.inMemory("SharedStoreTests.count"), store: store) var count = 0
        #expect(count == 1)
    }

    @Test("in a test process, code without an explicit store writes no file to the disk")
    func files() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "SharedStoreTests-\(UUID()).json")
        @Shared(.fileStorage(file)) var count = 0
        $count.withLock { $0 = 3 }
        try await $count.save()
        #expect(!FileManager.default.fileExists(atPath: file.path))
        @Shared(.fileStorage(file)) var again = 0
        #expect(again == 3)
        defer { try? FileManager.default.removeItem(at: file) }
        @Shared(.fileStorage(file), store: SharedStore()) var stored = 1
        try await $stored.save()
        #expect(FileManager.default.fileExists(atPath: file.path))
    }

    @Test("code without an explicit store shares the process's store")
    func process() {
        @Shared(.inMemory("SharedStoreTests.process")) var first = 1
        @Shared(.inMemory("SharedStoreTests.process")) var second = 2
        $first.withLock { $0 = 3 }
        #expect(second == 3)
    }
}
