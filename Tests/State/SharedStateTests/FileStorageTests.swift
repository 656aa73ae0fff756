import Foundation
import SharedState
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct FileStorageTests {
    private struct Settings: Codable, Equatable, Sendable {
        var name = "Blob"
        var isLoud = false
    }

    private let file = FileManager.default.temporaryDirectory
        .appendingPathComponent("SharedStateTests-\(UUID())")
        .appendingPathComponent("settings.json")

    private func removeFolder() { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }

    private func text(_ data: Data?) -> String? { data.map { String(decoding: $0, as: UTF8.self) } }

    @Test("the next store loads the saved value, also from a folder that was missing")
    func roundTrip() async throws {
        defer { removeFolder() }
        @Shared(.fileStorage(file), store: SharedStore()) var settings = Settings()
        #expect($settings.loadError == nil)
        $settings.withLock { $0.isLoud = true }
        try await $settings.save()
        @Shared(.fileStorage(file), store: SharedStore()) var read = Settings(name: "other")
        #expect(read == Settings(name: "Blob", isLoud: true))
        #expect(text(try Data(contentsOf: file)) == #"{"isLoud":true,"name":"Blob"}"#)
    }

    private func mode(_ path: String) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    @Test("created files and folders are private, also when they replace a readable one")
    func modes() throws {
        defer { removeFolder() }
        let deep = file.deletingLastPathComponent().appendingPathComponent("a/b/c.json")
        try DiskFileStorage().replace(deep, with: Data("1".utf8))
        #expect(try mode(deep.path) == 0o600)
        for folder in ["", "a", "a/b"] {
            #expect(try mode(file.deletingLastPathComponent().appendingPathComponent(folder).path) == 0o700)
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: deep.path)
        #expect(try DiskFileStorage().read(deep) == Data("1".utf8), "a public file is readable")
        try DiskFileStorage().replace(deep, with: Data("2".utf8))
        #expect(try mode(deep.path) == 0o600)
        #expect(try DiskFileStorage().read(deep) == Data("2".utf8))
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: deep.deletingLastPathComponent().path) == ["c.json"])
    }

    @Test("a link to a file stays a link when the file is replaced")
    func link() throws {
        defer { removeFolder() }
        try DiskFileStorage().replace(file, with: Data("1".utf8))
        let link = file.deletingLastPathComponent().appendingPathComponent("link.json")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        try DiskFileStorage().replace(link, with: Data("2".utf8))
        #expect(try DiskFileStorage().read(file) == Data("2".utf8))
    }

    @Test(
        "a secret file that others can read or write is rejected with the command that repairs it",
        arguments: [0o644, 0o640, 0o602])
    func secrets(mode: Int) throws {
        defer { removeFolder() }
        let storage = DiskFileStorage.secrets
        #expect(try storage.read(file) == nil)
        try storage.replace(file, with: Data("1".utf8))
        #expect(try storage.read(file) == Data("1".utf8))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
        let error = #expect(throws: (any Error).self) { _ = try storage.read(file) }
        #expect("\(try #require(error))".contains("chmod 600 '\(file.path)'"))
    }

    @Test("an external write is visible at the next load at the latest")
    func reload() async throws {
        defer { removeFolder() }
        @Shared(.fileStorage(file), store: SharedStore()) var count = 1
        try await $count.save()
        try Data("5".utf8).write(to: file)
        try await $count.load()
        #expect(count == 5)
    }

    @Test("a missing file is no error, and is not created before a change")
    func missing() {
        @Shared(.fileStorage(file), store: SharedStore()) var count = 1
        #expect(count == 1)
        #expect($count.loadError == nil)
        #expect(!FileManager.default.fileExists(atPath: file.path))
    }

    @Test(
        "a damaged file is a load error, and a change does not overwrite it",
        arguments: [" ", "{", #""text""#, "[1,"])
    func damaged(content: String) async throws {
        let files = InMemoryFileStorage([file.standardizedFileURL: Data(content.utf8)])
        @Shared(.fileStorage(file), store: SharedStore(files: files)) var count = 1
        #expect(($count.loadError as? FileStorageError)?.code == .damaged)
        $count.withLock { $0 = 2 }
        #expect(count == 2)
        #expect(($count.saveError as? FileStorageError)?.code == .notOverwritten)
        #expect(text(files.read(file.standardizedFileURL)) == content)
    }

    @Test("save() replaces a damaged file explicitly, and later changes are saved")
    func replaceDamaged() async throws {
        let files = InMemoryFileStorage([file.standardizedFileURL: Data("{".utf8)])
        @Shared(.fileStorage(file), store: SharedStore(files: files)) var count = 1
        try await $count.save()
        #expect(text(files.read(file.standardizedFileURL)) == "1")
        $count.withLock { $0 = 2 }
        #expect(await eventually { text(files.read(file.standardizedFileURL)) == "2" }, "the change is saved")
        #expect($count.saveError == nil)
    }

    @Test("a damaged file that was repaired can be loaded, and later changes are saved")
    func repaired() async throws {
        let url = file.standardizedFileURL
        let files = InMemoryFileStorage([url: Data("{".utf8)])
        @Shared(.fileStorage(url), store: SharedStore(files: files)) var count = 1
        files.replace(url, with: Data("8".utf8))
        try await $count.load()
        #expect(count == 8)
        #expect($count.loadError == nil)
        $count.withLock { $0 = 9 }
        #expect(await eventually { text(files.read(url)) == "9" }, "the change is saved")
    }

    @Test("an unreadable file is a load error, and is not overwritten")
    func unreadable() {
        let storage = GatedStorage(Data("4".utf8))
        storage.fail(with: TestError())
        @Shared(.fileStorage(file), store: SharedStore(files: storage)) var count = 1
        let error = $count.loadError as? FileStorageError
        #expect(error?.code == .unreadable)
        #expect(error?.cause is TestError)
        $count.withLock { $0 = 2 }
        #expect(storage.begun.isEmpty)
        #expect(text(storage.data) == "4")
    }

    @Test("a failed write is a save error, until one succeeds")
    func unwritable() async throws {
        let storage = GatedStorage()
        @Shared(.fileStorage(file), store: SharedStore(files: storage)) var count = 1
        storage.fail(with: TestError())
        storage.letThrough()
        await #expect(throws: FileStorageError.self) { try await $count.save() }
        #expect(($count.saveError as? FileStorageError)?.code == .unwritable)
        storage.fail(with: nil)
        storage.letThrough()
        try await $count.save()
        #expect($count.saveError == nil)
        #expect(text(storage.data) == "1")
    }

    @Test("changes during a write become one further write, of the newest value")
    func coalescing() async throws {
        let storage = GatedStorage()
        @Shared(.fileStorage(file), store: SharedStore(files: storage)) var count = 0
        $count.withLock { $0 = 1 }
        #expect(await eventually { storage.begun.count == 1 }, "the first write has begun")
        for number in 2...100 { $count.withLock { $0 = number } }
        storage.letThrough(2)
        #expect(await eventually { text(storage.data) == "100" }, "the second write is done")
        #expect(storage.begun.map { text($0) } == ["1", "100"])
    }

    @Test("a new wrapper reads the value of a pending write")
    func pendingWrite() async {
        let storage = GatedStorage(Data("1".utf8))
        let store = SharedStore(files: storage)
        do {
            @Shared(.fileStorage(file), store: store) var count = 0
            $count.withLock { $0 = 2 }
            #expect(await eventually { storage.begun.count == 1 }, "the write has begun")
            $count.withLock { $0 = 3 }
        }
        #expect(store.referenceCount == 0)
        @Shared(.fileStorage(file), store: store) var count = 0
        #expect(count == 3)
        storage.letThrough(2)
        #expect(await eventually { text(storage.data) == "3" }, "all changes are written")
    }

    @Test("a partly written file is never visible")
    func atomic() async throws {
        defer { removeFolder() }
        let long = String(repeating: "x", count: 200_000)
        @Shared(.fileStorage(file), store: SharedStore()) var value = long
        try await $value.save()
        let writer = Task { [shared = $value] in
            for number in 0..<50 {
                shared.withLock { $0 = long + "\(number)" }
                try await shared.save()
            }
        }
        for _ in 0..<200 {
            let text = try JSONDecoder().decode(String.self, from: Data(contentsOf: file))
            #expect(text.count >= long.count)
            await Task.yield()
        }
        try await writer.value
    }
}
