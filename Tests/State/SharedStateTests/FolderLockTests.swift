import Foundation
import TestSupport
import Testing

@testable import SharedState

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.timeLimit(.minutes(5))) struct FolderLockTests {
    private let folder = NSTemporaryDirectory() + "folder-lock-\(UUID())"

    @Test("a folder has one owner at a time, also within a process; it is created, and its lock is private")
    func oneOwner() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let first = try FolderLock(folder + "/a")
        let error = #expect(throws: FolderLock.Failure.self) { _ = try FolderLock(folder + "/a") }
        #expect(error?.reason == "is in use by process \(getpid()); use a separate folder for each process")
        _ = try FolderLock(folder + "/b")
        var status = stat()
        #expect(stat(folder + "/a", &status) == 0 && status.st_mode & 0o777 == 0o700)
        #expect(stat(folder + "/a/.lock", &status) == 0 && status.st_mode & 0o777 == 0o600)
        first.release()
        var second: FolderLock? = try FolderLock(folder + "/a")
        #expect(second != nil)
        second = nil
        _ = try FolderLock(folder + "/a")
    }

    @Test("a lock is released with its process, however that ends")
    func killed() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let lock = ["flock", "--no-fork", "--exclusive", folder + "/.lock"]
        let other = try ChildProcess("/usr/bin/env", lock + ["sh", "-c", "echo locked; exec sleep 100"])
        #expect(await other.nextLine() == "locked")
        #expect(throws: FolderLock.Failure.self) { _ = try FolderLock(folder) }
        other.signal(SIGKILL)
        #expect(await other.finish().status == -SIGKILL)
        _ = try FolderLock(folder)
    }

    @Test("a link in the place of the lock is not followed")
    func link() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let target = folder + "/target"
        try FileManager.default.createSymbolicLink(atPath: folder + "/.lock", withDestinationPath: target)
        #expect(throws: FolderLock.Failure.self) { _ = try FolderLock(folder) }
        #expect(!FileManager.default.fileExists(atPath: target))
    }
}
