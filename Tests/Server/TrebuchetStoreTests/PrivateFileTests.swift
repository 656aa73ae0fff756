import CSQLite
import Glibc
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster
import TrebuchetNodes

@testable import TrebuchetStore

/// The files of a store are accessible to their owner only.
@Suite(.timeLimit(.minutes(5))) struct PrivateFileTests {
    private func mode(_ path: String) -> mode_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : nil
    }

    @Test("the file, its log and its lock have mode 0600 while the store is open and afterwards")
    func modes() async throws {
        let folder = try TemporaryFolder()
        for _ in 0..<2 {
            let store = try SQLiteStore(path: folder.file())
            try await store.put([1], StateKey("n", "a"))
            _ = try await store.list("n")
            #expect(folder.names.count == 4, "\(folder.names)")
            for name in folder.names { #expect(mode(folder.file(name)) == 0o600, "\(name)") }
            await store.close()
            for name in folder.names { #expect(mode(folder.file(name)) == 0o600, "\(name)") }
        }
    }

    @Test(
        "a server is not ready when the open file or its log was moved or removed",
        arguments: ["data.db", "data.db-wal"])
    func gone(name: String) async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file())
        try await store.put([1], StateKey("n", "a"))
        let server = TrebuchetServer(transport: .webSocket(port: 0), store: store, log: nil)
        func problem() async -> String? { await server.readiness().first { $0.name == "store" }?.failureReason }
        // On a busy machine a single answer may take more than the 2 seconds of a check.
        #expect(await eventually { await problem() == nil })
        #expect(rename(folder.file(name), folder.file("moved")) == 0)
        #expect(await eventually { await problem()?.contains("\(folder.file(name)) was moved or removed") == true })
        // Nor when another file has taken its name.
        try StoreFile.create(folder.file(name))
        #expect(await problem() != nil)
        #expect(await eventually { await problem()?.contains("was moved or removed") == true })
        unlink(folder.file(name))
        #expect(rename(folder.file("moved"), folder.file(name)) == 0)
        #expect(await eventually { await problem() == nil })
        await server.shutdown()
        await store.close()
    }

    @Test("a node whose coordination store is a file is not ready while the file is moved")
    func removedByNode() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file())
        let membership = try ClusterMembership(of: "a", at: SQLiteEngine(store))
        let server = TrebuchetServer(transport: .webSocket(port: 0), cluster: membership, log: nil)
        func problem() async -> String? { await server.readiness().first { $0.name == "cluster" }?.failureReason }
        try await server.start()
        #expect(await eventually { await problem() == nil })
        #expect(rename(folder.file(), folder.file("moved")) == 0)
        #expect(await eventually { await problem()?.contains("was moved or removed") == true })
        #expect(rename(folder.file("moved"), folder.file()) == 0)
        // An engine failure counts until the member completes a round without one.
        #expect(await eventually { await problem() == nil })
        await server.shutdown()
        await store.close()
    }

    @Test(
        "the draft of a new file is private before it has content, and is never created over an existing file or link")
    func draft() throws {
        let folder = try TemporaryFolder()
        try StoreFile.create(folder.file("draft"))
        #expect(mode(folder.file("draft")) == 0o600)
        #expect(throws: StateStoreError.self) { try StoreFile.create(folder.file("draft")) }
        symlink(folder.file("elsewhere"), folder.file("link"))
        #expect(throws: StateStoreError.self) { try StoreFile.create(folder.file("link")) }
        symlink(folder.file("elsewhere"), folder.file("data.db-lock"))
        #expect(throws: StateStoreError.self) { try SQLiteStore(path: folder.file()) }
        #expect(mode(folder.file("elsewhere")) == nil, "a link is not followed")
    }

    @Test(
        "a file that others can read or write is refused with the command that fixes it, and is not changed",
        arguments: [0o644, 0o640, 0o604, 0o620, 0o602, 0o666, 0o601] as [mode_t])
    func exposed(mode: mode_t) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("it's.db")
        let store = try SQLiteStore(path: path)
        try await store.put([1], StateKey("n", "a"))
        await store.close()
        for names in [[path], [path + "-lock"], [path, path + "-lock"]] {
            for name in names { chmod(name, mode) }
            let before = FileBytes.read(path)
            let error = #expect(throws: StateStoreError.self) { try SQLiteStore(path: path) }
            #expect(error?.code == .insecurePermissions)
            let message = try #require(error).message
            let command = try #require(message.firstRange(of: "chmod 600 ")).lowerBound
            #expect(FileBytes.read(path) == before)
            #expect(Self.shell(String(message[command...])) == 0)
            let mended = try SQLiteStore(path: path)
            #expect(try await mended.get(StateKey("n", "a")) == [1])
            await mended.close()
        }
    }

    private static func shell(_ command: String) -> Int32 {
        var words: [UnsafeMutablePointer<CChar>?] = (["sh", "-c", command] as [String]).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var child: pid_t = 0
        guard posix_spawnp(&child, "sh", nil, nil, &words, nil) == 0 else { return -1 }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        return status
    }

    @Test("a log that others can read is refused too")
    func exposedLog() async throws {
        let folder = try TemporaryFolder()
        await (try SQLiteStore(path: folder.file())).close()
        FileBytes.write([], folder.file("data.db-wal"))
        chmod(folder.file("data.db-wal"), 0o644)
        let error = #expect(throws: StateStoreError.self) { try SQLiteStore(path: folder.file()) }
        #expect(error?.code == .insecurePermissions && error?.message.contains("data.db-wal") == true)
    }
}
