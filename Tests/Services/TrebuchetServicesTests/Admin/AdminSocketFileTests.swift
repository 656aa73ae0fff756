import Foundation
import Relays
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

@Suite struct AdminSocketFileTests {
    private func mode(_ path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode : nil
    }

    private func problem(_ path: String) -> String? {
        do throws(AdminSocketError) {
            let file = try AdminSocketFile(listeningAt: path)
            file.remove()
            close(file.descriptor)
            return nil
        } catch {
            return error.description
        }
    }

    @Test("the socket is private to its owner, and removed with its server")
    func mode() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/a.admin"
        let file = try AdminSocketFile(listeningAt: path)
        #expect(mode(path) == S_IFSOCK | 0o600)
        file.remove()
        #expect(mode(path) == nil)
        close(file.descriptor)
    }

    @Test("a stale socket is replaced; a live server's socket and other files are kept")
    func present() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/a.admin"
        let dead = try AdminSocketFile(listeningAt: path)
        close(dead.descriptor)
        #expect(mode(path) != nil, "the dead server's socket remains")
        let file = try AdminSocketFile(listeningAt: path)
        #expect(problem(path) == "another server listens at \(file.path)")
        // Another socket is at the path by now.
        dead.remove()
        #expect(mode(path) == S_IFSOCK | 0o600)
        #expect(problem(path) == "another server listens at \(file.path)")
        file.remove()
        close(file.descriptor)

        try Data("mine".utf8).write(to: URL(fileURLWithPath: path))
        #expect(problem(path)?.contains("exists and is not a socket") == true)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "mine")
    }

    @Test("a link is refused, wherever it leads")
    func links() throws {
        let folder = try TemporaryFolder()
        let dead = try AdminSocketFile(listeningAt: folder.path + "/dead")
        close(dead.descriptor)
        for target in ["/nowhere", folder.path + "/dead"] {
            let path = folder.path + "/link"
            symlink(target, path)
            #expect(problem(path)?.contains("exists and is not a socket") == true)
            #expect(mode(path).map { $0 & S_IFMT } == S_IFLNK)
            unlink(path)
        }
        #expect(mode(folder.path + "/dead") != nil)
    }

    @Test("another user's socket is refused", .enabled(if: geteuid() == 0, "only root can give a file away"))
    func otherOwner() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/a.admin"
        let dead = try AdminSocketFile(listeningAt: path)
        close(dead.descriptor)
        chown(path, 65_534, 65_534)
        #expect(problem(path)?.hasSuffix("belongs to another user") == true)
    }

    @Test("a user who can only read the folder cannot block the creation of the socket")
    func lockedFolder() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/a.admin"
        // Any user may lock a folder that they can open.
        let stranger = open(folder.path, O_RDONLY | O_DIRECTORY)
        #expect(flock(stranger, LOCK_EX) == 0)
        let outcome = StateRelay<[String?]>([])
        Thread.detachNewThread { [self] in
            let problem = problem(path)
            outcome.update { $0.append(problem) }
        }
        #expect(await eventually { outcome.currentValue == [nil] })
        close(stranger)
        #expect(await eventually { outcome.currentValue == [nil] })
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test("one of several servers that start concurrently listens, and the others fail", .timeLimit(.minutes(5)))
    func atOnce() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/a.admin"
        for _ in 0..<20 {
            let files = await withTaskGroup(of: AdminSocketFile?.self) { group in
                for _ in 0..<4 { group.addTask { try? AdminSocketFile(listeningAt: path) } }
                return await group.reduce(into: []) { $0 += [$1].compactMap(\.self) }
            }
            #expect(files.count == 1)
            for file in files {
                file.remove()
                close(file.descriptor)
            }
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test("a path that is too long, invalid or in a missing folder is an error with the reason")
    func paths() throws {
        let folder = try TemporaryFolder()
        let long = folder.path + "/" + String(repeating: "x", count: 107 - folder.path.utf8.count)
        #expect(problem(long)?.hasSuffix("has 108 bytes, more than 107; set a shorter one with --admin-socket") == true)
        #expect(problem(String(long.dropLast())) == nil, "107 bytes fit")
        for path in ["", folder.path + "/", folder.path + "/..", "a\u{0}b"] {
            #expect(problem(path)?.hasSuffix("is not a socket path") == true, "\(path)")
        }
        #expect(problem(folder.path + "/none/a")?.hasSuffix("No such file or directory") == true)
    }

    @Test("only the server's user and root may connect")
    func users() {
        #expect(AdminSocketFile.isPermitted(1000, 1000) && AdminSocketFile.isPermitted(0, 1000))
        #expect(!AdminSocketFile.isPermitted(1001, 1000) && !AdminSocketFile.isPermitted(1000, 0))
    }

    @Test("connecting without a server is an error with the reason")
    func nobody() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/a.admin"
        let none = #expect(throws: AdminSocketError.self) { try AdminConnection.connect(to: path) }
        #expect(none?.description.hasPrefix("\(path) does not exist") == true)
        let dead = try AdminSocketFile(listeningAt: path)
        close(dead.descriptor)
        let ended = #expect(throws: AdminSocketError.self) { try AdminConnection.connect(to: path) }
        #expect(ended?.description == "no server listens at \(path); its server has ended")
    }
}
