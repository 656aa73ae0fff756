package import Foundation

/// The folder of the package from whose sources the tests were built.
package let packageRoot: URL = {
    var folder = URL(filePath: #filePath)
    repeat {
        folder.deleteLastPathComponent()
    } while folder.path != "/" && !FileManager.default.fileExists(atPath: folder.appending(path: "Package.swift").path)
    return folder
}()
