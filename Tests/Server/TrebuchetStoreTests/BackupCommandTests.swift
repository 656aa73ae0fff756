import Foundation
import Glibc
import TestSupport
import Testing
import Trebuchet
import TrebuchetStore

/// `trebuchet backup`, `restore` and `store check` as an operator runs them, beside a server in a separate process.
@Suite(.timeLimit(.minutes(5))) struct BackupCommandTests {
    private func trebuchet(_ arguments: String...) async throws -> ChildProcess.Outcome {
        try await ChildProcess(ServeProcess.tool, arguments, error: .captured).finish()
    }

    private func add(_ titles: [String], _ server: ServeProcess) async throws {
        for title in titles {
            let done = try await trebuchet("call", "--url", server.url, "todos", "addTodo(title:)", "\"\(title)\"")
            #expect(done.status == 0, "\(done.error)")
        }
    }

    /// Returns the titles of a to-do list that `observe` has printed.
    private func titles(_ line: String?) throws -> [String] {
        struct State: Decodable {
            struct Item: Decodable { let title: String }
            let todos: [Item]
        }
        return try JSONDecoder().decode(State.self, from: Data(try #require(line).utf8)).todos.map(\.title)
    }

    @Test(
        "a client of a restored server is sent the restored state, and no version of the lost history",
        arguments: [false, true])
    func converges(killing: Bool) async throws {
        let folder = try TemporaryFolder()
        let (data, copy) = (folder.file(), folder.file("copy.db"))
        let server = try await ServeProcess(arguments: ["--data", data])
        try await add(["a", "b"], server)
        let observer = try ChildProcess(
            ServeProcess.tool, ["observe", "--url", server.url, "todos", "observeState"], error: .captured)
        #expect(try titles(await observer.nextLine()) == ["a", "b"])
        let saved = try await trebuchet("backup", data, "--to", copy)
        #expect(saved.status == 0 && saved.output == copy + "\n" && saved.error.isEmpty, "\(saved.error)")
        try await add(["lost 1", "lost 2"], server)
        while let line = await observer.nextLine(), try titles(line).last != "lost 2" {}

        let early = try await trebuchet("restore", copy, "--to", data)
        #expect(early.status == 1 && early.error.contains("\(data) is in use by process"), "\(early.error)")
        if killing { await server.kill() } else { #expect(await server.stop() == 0) }
        let existing = try await trebuchet("restore", copy, "--to", data)
        #expect(existing.status == 1 && existing.error.contains("exists and is never overwritten; move it away"))
        for suffix in ["", "-wal", "-shm"] { rename(data + suffix, data + ".old" + suffix) }
        let restored = try await trebuchet("restore", copy, "--to", data)
        #expect(restored.status == 0 && restored.output.hasPrefix("restored \(data) ("), "\(restored.error)")

        let port = try #require(server.url.split(separator: ":").last).description
        let next = try await ServeProcess(arguments: ["--data", data, "--port", port])
        #expect(try titles(await observer.nextLine()) == ["a", "b"])
        // As many new versions as were lost.
        try await add(["c", "d"], next)
        var seen = ["a", "b"]
        while seen.last != "d", let line = await observer.nextLine() { seen = try titles(line) }
        #expect(seen == ["a", "b", "c", "d"])
        observer.signal(SIGTERM)
        #expect(await observer.finish().output.contains("lost") == false)
        #expect(await next.stop() == 0)
    }

    @Test("backups in a folder have the time in their names, and only the newest of the same file are kept")
    func folder() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/kept"
        mkdir(path, 0o700)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let store = try SQLiteStore(path: folder.file())
        try await store.put([1], StateKey("n", "a"))
        await store.close()
        let older = ["data-20250101T000000Z.db", "data-20250102T000000Z.db", "data-20250103T000000Z.db"]
        let others = ["data-new.db", "database-20250101T000000Z.db", "data-20250101T000000Z.db-old", "notes.partial"]
        for name in older + others + ["data-20250104T000000Z.db.partial"] { FileBytes.write([1], "\(path)/\(name)") }
        let done = try await trebuchet("backup", folder.file(), "--to", path, "--keep", "2")
        #expect(done.status == 0)
        let made = try #require(done.output.split(separator: "\n").first.map(String.init))
        let name = try #require(made.split(separator: "/").last.map(String.init))
        #expect(name.wholeMatch(of: /data-20[0-9]{6}T[0-9]{6}Z\.db/) != nil, "\(made)")
        #expect(
            done.error == older.prefix(2).map { "trebuchet backup: removed \(path)/\($0)\n" }.joined(), "\(done.error)")
        let left = try FileManager.default.contentsOfDirectory(atPath: path)
        #expect(Set(left) == Set(others + [older[2], name]))
        #expect(try await trebuchet("store", "check", made).status == 0)
        let unkept = try await trebuchet("backup", folder.file(), "--to", folder.file("one.db"), "--keep", "2")
        #expect(unkept.status == 2 && unkept.error.contains("--keep requires a folder"), "\(unkept.error)")
    }

    @Test("store check prints the content beside a server, and names damaged rows with status 1")
    func check() async throws {
        let folder = try TemporaryFolder()
        let server = try await ServeProcess(arguments: ["--data", folder.file()])
        try await add(["a"], server)
        let whole = try await trebuchet("store", "check", folder.file())
        #expect(whole.status == 0 && whole.error.isEmpty, "\(whole.error)")
        #expect(whole.output.hasPrefix("\(folder.file()): schema 3, ") && whole.output.hasSuffix("\nno problem\n"))
        #expect(whole.output.contains("in the log; opened 1 time\nKIND "), "\(whole.output)")
        #expect(whole.output.contains(/\nstates +0 +1 +[0-9]+ +[0-9.]+ (B|KiB)\n/), "\(whole.output)")
        try await add(["b"], server)
        #expect(await server.stop() == 0)

        try await change(folder.file())
        let bytes = FileBytes.read(folder.file())
        let damaged = try await trebuchet("store", "check", folder.file())
        #expect(damaged.status == 1 && damaged.output.hasSuffix("\n1 problem\n"), "\(damaged.output)")
        #expect(
            damaged.error == """
                \(folder.file()): checksum mismatch in part 0 of the snapshot of 'states/todos.state'
                trebuchet store check: 1 problem

                """, "\(damaged.error)")
        #expect(FileBytes.read(folder.file()) == bytes)
        let saved = try await trebuchet("backup", folder.file(), "--to", folder.file("copy.db"))
        #expect(saved.status == 1 && saved.error.contains("\(folder.file()) is damaged (checksum mismatch in part 0"))
        #expect(!folder.names.contains { $0.hasPrefix("copy.db") })
    }

    /// Damages the snapshot of the to-do list.
    private func change(_ path: String) async throws {
        var bytes = FileBytes.read(path)
        let whole = Array(#"{"todos":["#.utf8)
        let place = try #require(bytes.firstRange(of: whole))
        bytes[place.lowerBound + 2] = UInt8(ascii: "x")
        FileBytes.write(bytes, path)
    }

    @Test("wrong operands, coordination stores and missing files are errors that say what to do")
    func errors() async throws {
        let folder = try TemporaryFolder()
        for command in ["backup", "restore"] {
            let unnamed = try await trebuchet(command, "x.db")
            #expect(unnamed.status == 2 && unnamed.error.contains("the destination is missing: pass --to"))
        }
        for url in ["redis://127.0.0.1:6379", "rediss://:secret@host", "redis+cluster://host"] {
            let remote = try await trebuchet("backup", url, "--to", folder.file("copy.db"))
            #expect(remote.status == 2 && remote.error.contains("back up Redis with its dump (RDB) or its log (AOF)"))
            #expect(remote.error.contains("Docs/Guides/Cluster.md") && !remote.error.contains("secret"))
        }
        let missing = try await trebuchet("backup", folder.file("no.db"), "--to", folder.file("copy.db"))
        #expect(missing.status == 1 && missing.error.contains("opening \(folder.file("no.db")): No such file"))
        #expect(folder.names.isEmpty)
    }

    @Test(
        "a backup for which the disk has no space is an error with both sizes",
        .enabled(if: geteuid() == 0, "only root may mount"))
    func noSpace() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file())
        try await store.put(Array(repeating: 7, count: 1 << 20), StateKey("n", "a"))
        await store.close()
        let script = "mount -t tmpfs -o size=512k none /mnt && exec \"$@\""
        let done = try await ChildProcess(
            "/usr/bin/env",
            [
                "unshare", "--mount", "sh", "-c", script, "sh", ServeProcess.tool, "backup", folder.file(), "--to",
                "/mnt/copy.db",
            ], error: .captured
        ).finish()
        #expect(done.status == 1 && done.error.contains("/mnt/copy.db needs 1"), "\(done.error)")
        #expect(done.error.contains("KiB, but /mnt/ has 512 KiB of free space"), "\(done.error)")
    }

    @Test("SIGTERM ends a backup without a file that is incomplete")
    func interrupted() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file())
        for number in 0..<32 {
            try await store.put(Array(repeating: UInt8(number), count: 1 << 20), StateKey("n", "\(number)"))
        }
        await store.close()
        let backup = try ChildProcess(
            ServeProcess.tool, ["backup", folder.file(), "--to", folder.file("copy.db")], error: .captured)
        #expect(await eventually { folder.names.contains { $0.hasPrefix("copy.db") } })
        backup.signal(SIGTERM)
        let status = await backup.finish().status
        // A fast machine may have completed it.
        #expect(status == 143 || status == 0 || status == -15)
        #expect(!folder.names.contains { $0.hasPrefix("copy.db.partial") }, "\(folder.names)")
    }
}
