import Foundation
import Observation
import TodoModel
import Trebuchet

/// The model of the view, which the server keeps current.
@MainActor @Observable final class ListModel {
    @ObservationIgnored @ObservedActor("todos", observe: \TodoList.observeState) var state

    init(client: TrebuchetClient) { $state.connect(client) }
}

/// The view: the current contents of the model as lines of text. A change of any property that it reads redraws it.
@MainActor func body(_ model: ListModel) -> [String] {
    guard let todos = model.state?.todos else { return [model.$state.error.map { "\($0)" } ?? "loading …"] }
    let open = todos.count { !$0.isDone }
    let title = "\(open) of \(todos.count) to do" + (model.$state.isConnecting ? " (the server is away)" : "")
    return [title] + todos.map { "  \($0.isDone ? "✓" : "•") \($0.title)" }
}

// ObservedClient [--port PORT] [--until COUNT]: shows the list until Control-C, or until it has COUNT items.
func number(after option: String) -> Int? {
    let words = CommandLine.arguments
    return words.firstIndex(of: option).flatMap { words.dropFirst($0 + 1).first }.flatMap { Int($0) }
}
let port = UInt16(clamping: number(after: "--port") ?? 8080)
let until = number(after: "--until") ?? .max

// It connects when the model is first read, and retries until it succeeds.
let model = ListModel(client: TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port)))
var shown: [String] = []
for await lines in Observations({ body(model) }) where lines != shown {
    shown = lines
    print(lines.joined(separator: "\n"))
    fflush(nil)  // Print immediately, even into a pipe.
    if model.state?.todos.count ?? 0 >= until { break }
}
