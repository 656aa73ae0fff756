import Foundation
import SharedState
import TestSupport
import Testing

/// Files that other processes write while their values are shared.
@Suite(.timeLimit(.minutes(5)))
struct FileWatchTests {
    private let file = FileManager.default.temporaryDirectory
        .appendingPathComponent("FileWatchTests-\(UUID())")
        .appendingPathComponent("a/count.json")

    private func removeFolder() {
        try? FileManager.default.removeItem(at: file.deletingLastPathComponent().deletingLastPathComponent())
    }

    private func makeFolder() throws {
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    }

    @Test("an external write becomes the value, in whatever way it is made")
    func written() async throws {
        defer { removeFolder() }
        try makeFolder()
        @Shared(.fileStorage(file), store: SharedStore()) var count = 1
        try Data("2".utf8).write(to: file)
        #expect(await eventually { count == 2 }, "written in place")
        try Data("3".utf8).write(to: file, options: .atomic)
        #expect(await eventually { count == 3 }, "replaced")
        @Shared(.fileStorage(file), store: SharedStore()) var other = 1
        $other.withLock { $0 = 4 }
        #expect(await eventually { count == 4 }, "written by another store")
    }

    @Test("a file in a folder that is created later is noticed")
    func folderLater() async throws {
        defer { removeFolder() }
        @Shared(.fileStorage(file), store: SharedStore()) var count = 1
        try makeFolder()
        try Data("2".utf8).write(to: file)
        #expect(await eventually { count == 2 }, "the file is noticed")
    }

    @Test("when the file is removed, the value is the initial one")
    func removed() async throws {
        defer { removeFolder() }
        try makeFolder()
        try Data("2".utf8).write(to: file)
        @Shared(.fileStorage(file), store: SharedStore()) var count = 1
        #expect(count == 2)
        try FileManager.default.removeItem(at: file)
        #expect(await eventually { count == 1 }, "the removal is noticed")
    }

    @Test("external damage is an error, the value stays, and the file is preserved until it is repaired")
    func damaged() async throws {
        let files = InMemoryFileStorage([file: Data("2".utf8)])
        @Shared(.fileStorage(file), store: SharedStore(files: files)) var count = 1
        files.replace(file, with: Data("two".utf8))
        #expect(($count.loadError as? FileStorageError)?.code == .damaged)
        #expect(count == 2)
        $count.withLock { $0 = 3 }
        #expect(($count.saveError as? FileStorageError)?.code == .notOverwritten)
        files.replace(file, with: Data("4".utf8))
        #expect(count == 4)
        #expect($count.loadError == nil)
    }

    @Test("a value's own writes are not mistaken for external ones")
    func own() async throws {
        let files = InMemoryFileStorage()
        let decoded = Shared(value: 0)
        let key = FileStorageKey<Int>.fileStorage(
            file,
            decode: { data in
                decoded.withLock { $0 += 1 }
                return Int(String(decoding: data, as: UTF8.self)) ?? 0
            }, encode: { Data("\($0)".utf8) })
        @Shared(key, store: SharedStore(files: files)) var count = 1
        for number in 2..<50 {
            $count.withLock { $0 = number }
            try await $count.save()
        }
        #expect(count == 49)
        #expect(decoded.wrappedValue == 0)
        files.replace(file, with: Data("7".utf8))
        #expect(count == 7)
        #expect(decoded.wrappedValue == 1)
    }

    @Test("the watch ends with the last wrapper")
    func released() {
        let files = InMemoryFileStorage()
        let decoded = Shared(value: 0)
        do {
            let key = FileStorageKey<Int>.fileStorage(
                file,
                decode: { _ in
                    decoded.withLock { $0 += 1 }
                    return 1
                }, encode: { _ in Data() })
            @Shared(key, store: SharedStore(files: files)) var count = 0
            files.replace(file, with: Data("1".utf8))
            #expect(count == 1)
        }
        files.replace(file, with: Data("2".utf8))
        #expect(decoded.wrappedValue == 1)
    }
}
