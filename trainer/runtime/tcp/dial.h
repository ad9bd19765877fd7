// A node's side of letting a connection in.
#pragma once

#include <asio.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/runtime/tcp/address.h"
#include "trainer/runtime/tcp/connection.h"
#include "trainer/runtime/tcp/handshake.h"

namespace spes::trainer {

// One try. Everything but `hello` is the same for all of a node's.
class Dial : public Connection::Owner, public std::enable_shared_from_this<Dial> {
 public:
  struct Setup {
    HostPort address;
    std::shared_ptr<TlsContext> tls;  // null: without
    std::string token;
    TcpOptions options;
    TcpScenario scenario;
    int nodes = 0;  // of the run; 0: not known
  };
  struct LetIn {
    std::shared_ptr<Connection> connection;  // its owner is still the dial
    Welcome welcome;
  };
  struct Failure {
    std::string why;         // one line, the address included
    bool permanent = false;  // trying again is of no use
    bool refused = false;    // by the coordinator itself, as far as TLS can tell
    bool unknown_session = false;
    std::shared_ptr<Connection> last_words = nullptr;  // that are still to be written
  };
  using Result = std::variant<LetIn, Failure>;

  // `setup` must outlive the dial. The hello's random number and time are filled in. `done` is
  // called once, by the loop, unless the dial is abandoned.
  Dial(asio::io_context& io, const Setup& setup, Hello hello, std::function<void(Result)> done);

  void Start();
  void Tick(double passed);
  void Abandon();

  // Connection::Owner.
  void OnOpen(Connection& connection) override;
  std::optional<std::uint64_t> Most(const Connection& connection, FrameType type) const override;
  void OnFrame(Connection& connection, const FrameHeader& header,
               std::string_view payload) override;
  void OnWireError(Connection& connection, const std::string& why) override;
  void OnClosed(Connection& connection, const std::string& why, bool permanent) override;

 private:
  void TryNext(const std::string& why);
  std::string NoAnswer() const;
  void OnConnected();
  void OnRefuse(const Refuse& refuse);
  void Fail(const std::string& why, bool permanent = false, std::optional<RefuseCode> code = {});
  void Finish(Result result);

  asio::io_context& io_;
  const Setup& setup_;
  Hello hello_;
  std::function<void(Result)> done_;  // empty: it is over
  double rest_s_;
  double share_s_ = 0;  // of that: of the address at hand
  asio::ip::tcp::resolver resolver_;
  asio::ip::tcp::socket socket_;
  std::vector<asio::ip::tcp::endpoint> endpoints_;
  std::size_t next_ = 0;
  std::shared_ptr<Connection> connection_;
  Transcript said_;
};

}  // namespace spes::trainer
