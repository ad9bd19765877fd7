// Through a real Slurm of one node: a study, and a run with its nodes as tasks.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "analysis/hdf5/log_reader.h"
#include "tests/end_to_end/sweep_testing.h"

namespace spes::end_to_end {
namespace {

using ::testing::HasSubstr;

bool There(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

// A TCP port that nobody listens on.
int FreePort() {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  bind(s, reinterpret_cast<sockaddr*>(&address), sizeof address);
  getsockname(s, reinterpret_cast<sockaddr*>(&address), &length);
  close(s);
  return ntohs(address.sin_port);
}

// Controller, node and authentication, all on the loopback device and in the test's folder.
class SlurmTest : public SweepTestBase {
 protected:
  void SetUp() override {
    setenv("PATH", (std::string(getenv("PATH")) + ":/usr/sbin:/sbin").c_str(), 1);
    if (geteuid() != 0) GTEST_SKIP() << "a Slurm of one's own wants root";
    for (const char* program : {"slurmctld", "slurmd", "munged", "sbatch", "squeue"}) {
      if (!There(program)) GTEST_SKIP() << "no " << program << " here: packages slurm-wlm, munge";
    }
    StartCluster();
  }

  ~SlurmTest() override {
    for (const pid_t daemon : daemons_) {
      kill(daemon, SIGTERM);
      Wait(daemon);
    }
  }

  void StartCluster() {
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    const std::string name = std::string(host).substr(0, std::string(host).find('.'));
    const std::string here = folder.string();
    for (const char* sub : {"state", "spool"}) std::filesystem::create_directories(folder / sub);
    Write("munge.key", std::string(64, 'k'));
    std::filesystem::permissions(folder / "munge.key", std::filesystem::perms::owner_read);
    Write("slurm.conf",
          "ClusterName=test\nSlurmctldHost=" + name +
              "(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n"
              "AuthType=auth/munge\nCryptoType=crypto/munge\nAuthInfo=socket=" +
              here + "/munge.sock\nSlurmctldPort=" + std::to_string(FreePort()) +
              "\nSlurmdPort=" + std::to_string(FreePort()) +
              "\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
              "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
              "MpiDefault=none\nReturnToService=2\n"
              "AccountingStorageType=accounting_storage/none\n"
              "JobAcctGatherType=jobacct_gather/none\nStateSaveLocation=" +
              here + "/state\nSlurmdSpoolDir=" + here + "/spool\nSlurmctldPidFile=" + here +
              "/slurmctld.pid\nSlurmdPidFile=" + here + "/slurmd.pid\nNodeName=" + name +
              " NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN\nPartitionName=here Nodes=" + name +
              " Default=YES State=UP\n");
    setenv("SLURM_CONF", Path("slurm.conf").c_str(), 1);
    Daemon("munged -F --force --key-file=munge.key --socket=" + here +
           "/munge.sock --pid-file=" + here + "/munged.pid --log-file=" + here +
           "/munged.log --seed-file=" + here + "/munged.seed");
    Daemon("slurmctld -D -c");
    Daemon("slurmd -D -c");
    for (int i = 0; i < 300; ++i) {
      if (std::system("sinfo -h -t idle 2>/dev/null | grep -q idle") == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    GTEST_SKIP() << "a Slurm on the loopback device does not come up here: " << Read("daemons.txt");
  }

  void Daemon(const std::string& command) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string line =
          "cd " + folder.string() + " && exec " + command + " >>daemons.txt 2>&1 </dev/null";
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
    daemons_.push_back(child);
  }

  // What Slurm knows of job and node, and what its daemons said.
  std::string Diagnosis() {
    const std::string line = "cd " + folder.string() +
                             " && (scontrol show job 1; scontrol show node) >diagnosis.txt 2>&1";
    return std::system(line.c_str()) == 0 ? Read("diagnosis.txt") + Read("daemons.txt")
                                          : Read("daemons.txt");
  }

  std::vector<pid_t> daemons_;
};

TEST_F(SlurmTest, GivesTheSameTable) {
  Write("here.yaml", TinyStudy("here"));
  Write("there.yaml", TinyStudy("there") + "slurm: {partition: here, time: 10 min, cpus: 1}\n");
  const Outcome submitted = Run("sweep there.yaml --slurm");
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  EXPECT_THAT(submitted.out, HasSubstr("4 runs submitted as job 1;"));
  ASSERT_EQ(Run("sweep here.yaml --jobs 1 --quiet").code, 0);
  Outcome status;
  for (int i = 0; i < 240; ++i) {
    status = Run("sweep status there.yaml");
    if (status.out.find("finished       4\n") != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  ASSERT_THAT(status.out, HasSubstr("finished       4\n"));
  ASSERT_EQ(Run("sweep collect here.yaml").code, 0);
  ASSERT_EQ(Run("sweep collect there.yaml").code, 0);
  EXPECT_EQ(Table("here"), Table("there"));
  EXPECT_EQ(Table("there").size(), 5U);
}

TEST_F(SlurmTest, RunsTheBatchExample) {
  // A node for each of the machine's two processors.
  std::string scenario = TinyScenario();
  scenario.replace(scenario.find("count: 3"), 8, "count: 1");
  Write("two.yaml", scenario);
  const std::string steps = " --set training.steps=80";
  ASSERT_EQ(Run("two.yaml --output sim.h5" + steps).code, 0);
  const std::string hash = analysis::ReadRunLogHead(Path("sim.h5")).world_hash;
  const auto command = [this](const std::string& line) {
    return std::system(("cd " + folder.string() + " && " + line + " >>slurm.txt 2>&1").c_str());
  };
  ASSERT_EQ(command("SPES_PROGRAM=" SPES_PROGRAM " SPES_PORT=" + std::to_string(FreePort()) +
                    " sbatch --ntasks=2 --time=10 --output=job.txt " SPES_SOURCE_DIR
                    "/scenarios/deploy/slurm.sbatch two.yaml" +
                    steps),
            0)
      << Read("slurm.txt");
  const auto log_says = [this](const std::string& words) {
    for (int i = 0; i < 1200; ++i) {
      if (Read("spes-run/coordinator.log").find(words) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  };
  // As if its time were nearly up: it ends in good order, queues again, and goes on.
  ASSERT_TRUE(log_says("\"event\":\"round\"")) << Read("job.txt") << Read("slurm.txt");
  EXPECT_EQ(command("scancel --batch --signal=TERM 1"), 0) << Read("slurm.txt");
  ASSERT_TRUE(log_says("interrupted, world")) << Read("job.txt");
  // A job that queues again waits for two minutes. Here for two seconds: in the one in which it was
  // killed the node would refuse it. Again and again: it is given its time when it has quite ended.
  const std::string over = "complete, world " + hash;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (std::chrono::steady_clock::now() < until) {
    if (Read("spes-run/coordinator.log").find(over) != std::string::npos) break;
    command(
        "squeue -h -t pending -o %T | grep -q PENDING && sleep 2 && "
        "scontrol update JobId=1 StartTime=now");
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  ASSERT_THAT(Read("spes-run/coordinator.log"), HasSubstr(over))
      << Read("job.txt") << Read("slurm.txt") << Diagnosis();
  for (int i = 0; i < 600 && command("test -z \"$(squeue -h)\"") != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (const char* node : {"spes-run/node-0.log", "spes-run/node-1.log"}) {
    EXPECT_THAT(Read(node), HasSubstr("the run is over"));
  }
  EXPECT_THAT(Read("spes-run/coordinator.log"), HasSubstr("going on after round"));
}

}  // namespace
}  // namespace spes::end_to_end
