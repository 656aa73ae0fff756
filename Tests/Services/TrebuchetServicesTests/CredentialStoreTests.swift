import Foundation
import Testing

@testable import TrebuchetServices

@Suite struct CredentialStoreTests {
    private let folder: TemporaryFolder
    private let store: FileCredentialStore
    private let credential = Credential(refreshToken: "a.b", user: User(id: "ada", email: "ada@b.c"))

    init() throws {
        folder = try TemporaryFolder()
        store = FileCredentialStore(path: folder.path + "/deep/down/credential.json")
    }

    private func mode(_ path: String) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    @Test("a credential is stored in a private file, replaced as a whole, and deleted")
    func file() throws {
        #expect(try store.load() == nil)
        try store.save(credential)
        #expect(try store.load() == credential)
        #expect(try mode(store.path) == 0o600)
        #expect(try mode(folder.path + "/deep") == 0o700)
        var next = credential
        next.refreshToken = "c.d"
        try store.save(next)
        #expect(try store.load() == next)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/deep/down").count == 1)
        try store.save(nil)
        try store.save(nil)
        #expect(try store.load() == nil)
    }

    @Test("a file readable by others, or damaged, is an error and not treated as empty")
    func refused() throws {
        try store.save(credential)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: store.path)
        let readable = #expect(throws: FileCredentialStore.Failure.self) { try store.load() }
        #expect(readable?.description.contains("chmod 600") == true)
        try Data("{".utf8).write(to: URL(fileURLWithPath: store.path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: store.path)
        let damaged = #expect(throws: FileCredentialStore.Failure.self) { try store.load() }
        #expect(damaged?.description.contains("is damaged") == true)
    }

    @Test("an unwritable file is an error, and no other file is left beside it")
    func unwritable() throws {
        let file = FileCredentialStore(path: folder.path + "/folder")
        try FileManager.default.createDirectory(atPath: file.path, withIntermediateDirectories: true)
        #expect(throws: FileCredentialStore.Failure.self) { try file.save(credential) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["folder"])
    }
}
